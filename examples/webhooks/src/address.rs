//! Which addresses are on the public Internet.
//!
//! A receiver's URL comes from a user, and this program may stand where that user may not go:
//! next to a database, a router, a cloud's metadata service. So only public addresses are called,
//! unless the operator says otherwise.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is public: in none of the blocks that IANA's registries of
/// special-purpose addresses set aside, and not multicast.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Networks within the address space that are not public: address, and length of the prefix.
const SPECIAL_V4: [([u8; 4], u32); 18] = [
    ([0, 0, 0, 0], 8),       // this network
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // shared by a provider's customers
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local, and the metadata of clouds
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // protocol assignments
    ([192, 0, 2, 0], 24),    // documentation
    ([192, 31, 196, 0], 24), // AS112, which answers for private addresses
    ([192, 52, 193, 0], 24), // relays of multicast
    ([192, 88, 99, 0], 24),  // relays to IPv6, withdrawn
    ([192, 168, 0, 0], 16),  // private
    ([192, 175, 48, 0], 24), // AS112
    ([198, 18, 0, 0], 15),   // benchmarks
    ([198, 51, 100, 0], 24), // documentation
    ([203, 0, 113, 0], 24),  // documentation
    ([224, 0, 0, 0], 4),     // multicast
    ([240, 0, 0, 0], 4),     // reserved, and broadcast
];

/// The same for IPv6, within global unicast.
const SPECIAL_V6: [([u16; 3], u32); 5] = [
    ([0x2001, 0, 0], 23),         // protocol assignments, Teredo among them
    ([0x2001, 0xdb8, 0], 32),     // documentation
    ([0x2002, 0, 0], 16),         // 6to4: an IPv4 address in disguise
    ([0x2620, 0x4f, 0x8000], 48), // AS112
    ([0x3fff, 0, 0], 20),         // documentation
];

/// 64:ff9b::/96: what follows is an IPv4 address, which a gateway calls.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let in_network = |(network, prefix): &([u8; 4], u32)| {
        let difference = address.to_bits() ^ Ipv4Addr::from(*network).to_bits();
        difference.leading_zeros() >= *prefix
    };
    !SPECIAL_V4.iter().any(in_network)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    if address.segments().starts_with(&NAT64) {
        let [.., a, b, c, d] = address.octets();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let in_network = |([a, b, c], prefix): &([u16; 3], u32)| {
        let network = Ipv6Addr::new(*a, *b, *c, 0, 0, 0, 0, 0);
        let difference = address.to_bits() ^ network.to_bits();
        difference.leading_zeros() >= *prefix
    };
    // Global unicast is 2000::/3. Loopback, unique-local, link-local and multicast lie elsewhere.
    let is_global_unicast = in_network(&([0x2000, 0, 0], 3));
    is_global_unicast && !SPECIAL_V6.iter().any(in_network)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
        169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.31.195.255 \
        192.31.197.0 192.52.192.255 192.52.194.0 192.175.47.255 192.175.49.0 192.167.255.255 \
        192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700::1111 \
        2620:4f:7fff::1 2620:4f:8001::1 2001:200::1 2003::1 3fff:1000::1 ::ffff:1.1.1.1 \
        64:ff9b::1.1.1.1";

    const SPECIAL: &str = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 \
        127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 \
        192.88.99.1 192.31.196.1 192.52.193.1 192.168.1.1 192.175.48.1 198.18.0.1 \
        198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 \
        255.255.255.255";

    const SPECIAL_IN_IPV6: &str = ":: ::1 ::127.0.0.1 ::1.1.1.1 100::1 1fff::1 2001::1 2001:1ff::1 2001:db8::1 \
        2002:7f00:1:: 2620:4f:8000::1 3fff:fff::1 4000::1 5f00::1 fc00::1 fdff::1 fe80::1 \
        febf::1 fec0::1 ff02::1 ffff::1";

    #[test]
    fn only_public_addresses_are_public() {
        let special = [SPECIAL, SPECIAL_IN_IPV6].map(|list| (list, false));
        for (list, expected) in special.into_iter().chain([(PUBLIC, true)]) {
            for text in list.split_whitespace() {
                assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
            }
        }
    }
}
