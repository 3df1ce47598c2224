#!/bin/sh
# debian.sh FOLDER PACKAGES PROGRAM: fetches packages of Debian, and what they depend on that this
# machine lacks, unpacks them below FOLDER/root, and writes FOLDER/bin/PROGRAM: a script that runs the
# program with the libraries beside it. Nothing is installed, and root's rights are not needed.
set -eu
folder=$1 packages=$2 program=$3
mkdir -p "$folder/bin" "$folder/root" "$folder/apt/sources"
cd "$folder"
exec 9>lock
flock 9 # Another step may fetch packages at the same time.
mkdir -p apt/lists/partial apt/cache/archives/partial
cp /etc/apt/sources.list.d/debian.sources apt/sources
apt() {
  apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Debug::NoLocking=1 \
    -o "Dir::Etc::sourceparts=$folder/apt/sources" -o "Dir::State::lists=$folder/apt/lists" \
    -o "Dir::Cache=$folder/apt/cache" "$@"
}
apt update
# shellcheck disable=SC2086 # Several packages.
apt install --download-only --no-install-recommends --yes $packages
for package in apt/cache/archives/*.deb; do
  # Each is unpacked once: another step may be running a program of an earlier call.
  [ ! -e "$package.unpacked" ] || continue
  dpkg -x "$package" root
  touch "$package.unpacked"
done
# Debian keeps PostgreSQL's programs in a folder of their version, `initdb` beside `postgres`.
for name in "$program" initdb; do
  for found in root/usr/bin/"$name" root/usr/sbin/"$name" root/usr/lib/postgresql/*/bin/"$name"; do
    [ -f "$found" ] && [ ! -e "bin/$name" ] || continue
    cat >"bin/$name.new" <<END
#!/bin/sh
export VALGRIND_LIB='$folder/root/usr/libexec/valgrind'
LD_LIBRARY_PATH="\$(echo '$folder'/root/usr/lib/*-linux-gnu):\$(echo '$folder'/root/lib/*-linux-gnu)" \\
  exec '$folder/$found' "\$@"
END
    chmod +x "bin/$name.new"
    mv "bin/$name.new" "bin/$name"
  done
done
[ -x "bin/$program" ]
