#!/bin/sh
# Installs, uses, removes and purges the package $1 in a Debian that is thrown away afterwards: the test runs this on a copy-on-write view
# of the system. Every step ends the script if it fails.
set -eu
package=$1
say() { echo "== $*"; }

# as begins a command that runs as the unit runs it: as its user, without capabilities and without a way to get any.
as="setpriv --reuid=flowfabric --regid=flowfabric --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs
	env -i HOME=/var/lib/flowfabric PATH=/usr/bin:/bin"

say install
dpkg --install "$package"
dpkg --verify flowfabric
id flowfabric
stat -c '%U:%G %a %n' /usr/bin/flowfabric /etc/flowfabric /etc/flowfabric/flowfabric.env /var/lib/flowfabric

say start
sed -i 's/^FF_LISTEN=.*/FF_LISTEN=127.0.0.1:0/' /etc/flowfabric/flowfabric.env
export FF_API_KEY=$($as flowfabric api-keys create --store sqlite:/var/lib/flowfabric/flowfabric.db --role admin --name me --template '{{.secret}}')
command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/flowfabric.service)
log=/var/lib/flowfabric/server.log
$as $command 2>"$log" >&2 &
server=$!
for _ in $(seq 600); do
	address=$(sed -n 's/.*\(http:\/\/127\.0\.0\.1:[0-9]*\).*/\1/p' "$log" | head -n 1)
	test -z "$address" || break
	kill -0 $server || { cat "$log"; exit 1; }
	sleep 0.2
done
test "$(ps -o user= -p $server)" != root
export FF_SERVER="$address" FF_NAMESPACE=default

say submit
id=$(flowfabric submit hello --text world --quiet)
test "$(flowfabric input "$id")" = world
flowfabric get "$id" --template '{{.kind}} {{.status}}'
stat -c '%U:%G %a %n' /var/lib/flowfabric/flowfabric.db
manual=$(zcat /usr/share/man/man1/flowfabric-submit.1.gz | head -n 1)
say "$manual"
bash -n /usr/share/bash-completion/completions/flowfabric

say stop
kill -TERM $server
wait $server

say install again
dpkg --install "$package" </dev/null
grep -q '^FF_LISTEN=127.0.0.1:0$' /etc/flowfabric/flowfabric.env

say install again without settings
mv /etc/flowfabric/flowfabric.env /etc/flowfabric/kept.env
dpkg --install "$package" </dev/null
test ! -e /etc/flowfabric/flowfabric.env
mv /etc/flowfabric/kept.env /etc/flowfabric/flowfabric.env

say remove
dpkg --remove flowfabric
test ! -e /usr/bin/flowfabric
ls /etc/flowfabric/flowfabric.env /var/lib/flowfabric/flowfabric.db

say purge
dpkg --purge flowfabric
say done
