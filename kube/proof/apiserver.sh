#!/bin/sh
# Builds kube-apiserver and kube-controller-manager from Debian's sources into the current folder, and
# unpacks an etcd beside them: 120 MB to fetch, 4 GB on the disk while it builds. Nothing is installed.
set -eu
mkdir -p tools source packages apt/lists/partial apt/cache/archives/partial apt/sources
sed 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources \
  >apt/sources/debian.sources
here=$PWD
apt() {
  program=$1
  shift
  "$program" -q -o Dir::Etc::sourcelist=/dev/null -o Debug::NoLocking=1 \
    -o "Dir::Etc::sourceparts=$here/apt/sources" -o "Dir::State::lists=$here/apt/lists" \
    -o "Dir::Cache=$here/apt/cache" "$@"
}
apt apt-get update
# `apt-get source` takes no pattern.
version=$(apt apt-cache showsrc --only-source kubernetes | sed -n 's/^Version: \(1\.20\..*\)/\1/p' |
  sort -V | tail -n 1)
cd packages
apt apt-get source --download-only "kubernetes=$version"
# Without what they depend on: go needs none of it.
apt apt-get download etcd-server golang-1.19-go golang-1.19-src \
  golang-github-modern-go-reflect2-dev libpopt0 rsync
cd ..
for package in packages/*.deb; do dpkg -x "$package" tools; done
tar -xzf packages/kubernetes_*.orig.tar.gz -C source --strip-components 1
tar -xJf packages/kubernetes_*.debian.tar.xz -C source
tools=$PWD/tools
cp tools/usr/bin/etcd .
cd source
while read -r patch; do patch -p1 -s -N <"debian/patches/$patch"; done <debian/patches/series
# The vendored reflect2 panics at the first JSON under Go 1.18 and later, and Debian's does not.
rm -rf vendor/github.com/modern-go/reflect2
cp -r "$tools/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/
mkdir -p .go/src/k8s.io
ln -sfn ../../.. .go/src/k8s.io/kubernetes
export GOPATH="$PWD/.go" HOME="$PWD/.home" CGO_ENABLED=0 GOPROXY=off GOFLAGS=-p=2
export PATH="$tools/usr/lib/go-1.19/bin:$tools/usr/bin:$PATH"
export LD_LIBRARY_PATH="$(echo "$tools"/usr/lib/*-linux-gnu)"
make WHAT="cmd/kube-apiserver cmd/kube-controller-manager"
cp _output/bin/kube-apiserver _output/bin/kube-controller-manager ..
cd ..
rm -rf source tools packages apt
