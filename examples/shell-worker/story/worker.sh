#!/bin/sh
# A worker made of curl and jq. It makes thumbnails of pictures until it is told to drain.
#
#   FF_SERVER   address of the server
#   FF_API_KEY  key with the role work, if the server asks for one
#   LANE        lane to take work from
#   INSTANCE    name of this process, different from that of every other
set -eu
: "${FF_SERVER:?}" "${LANE:?}" "${INSTANCE:?}"
fence= # of the lease that is held
token= # of the waitpoint that is signalled

# call METHOD PATH [BODY] prints the answer, or the problem on standard error. Every call carries a key of its own, so that curl may
# repeat it when the network fails. Headers go through standard input: the arguments of a process are for everybody to see.
call() {
	{
		echo 'header = "Content-Type: application/json"'
		echo "header = \"Idempotency-Key: $(od -An -N8 -tx8 /dev/urandom | tr -d ' ')\""
		[ -z "$fence" ] || echo "header = \"FlowFabric-Lease: $fence\""
		[ -z "$token" ] || echo "header = \"FlowFabric-Token: $token\""
		[ -z "${FF_API_KEY:-}" ] || echo "header = \"Authorization: Bearer $FF_API_KEY\""
	} | curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused --config - --request "$1" --data "${3:-}" "$FF_SERVER$2" || {
		echo "$1 $2 failed" >&2
		return 1
	}
}

# ask gives the lease back until somebody says whether a large picture may be made. The holder of the token says it: here the worker
# itself does, as the sender of a callback would, without any key.
ask() {
	answer=$(call POST "$at/suspend" '{
		"waitpoints": [{"fresh": {"waitpoint_key": "size"}}], "resume_condition": {"type": "single", "name": "decided"},
		"reason_code": "waiting_for_callback", "timeout_ms": 3600000, "continuation": {"asked": true}, "idempotency_key": "size"}')
	echo "suspend: $(echo "$answer" | jq -r .outcome)"
	eval "$(echo "$answer" | jq -r '.waitpoints[0] | @sh "waitpoint=\(.waitpoint_id) token=\(.token)"')"
	fence=
	call POST "/v1/waitpoints/$waitpoint/signals" '{"name": "decided", "payload": {"large": true}}' | jq -r '"signal: " + .outcome + ", " + .effect'
	token=
}

# attempt does the work and reports how it ended. The step is the part that must not be done twice: the first result is kept.
attempt() {
	call POST "$at/progress" "$(jq -nc --arg message "fetching $name" '{percent: 10, $message}')" >/dev/null
	call PUT "$at/steps/fetch" "$(jq -nc --arg file "$name.raw" '{result: {$file}}')" | jq -r '"step fetch: " + .outcome'
	if [ "$width" -gt 1000 ] && [ -z "$cause" ]; then # once it is resumed it begins again, and finds how the wait ended
		ask
	elif [ "$width" -le 0 ]; then # no retry helps against a wrong input
		call POST "$at/fail" '{"class": "permanent", "category": "bad_input", "message": "a width of 0"}' | jq -r '"fail: " + .outcome'
	elif [ "$name" = blurred ] && [ "$index" -eq 0 ]; then # the policy of the work decides whether there is another attempt
		call POST "$at/fail" '{"category": "out_of_focus", "message": "the picture is blurred"}' | jq -r '"fail: " + .outcome'
	else
		call POST "$at/complete" "$(jq -nc --arg thumbnail "$name-$width.png" '{result: {$thumbnail}}')" | jq -r '"complete: " + .status'
	fi
}

# renew keeps the lease for as long as the work takes.
renew() {
	while call POST "$at/renew" '{}' && sleep 2; do :; done
}

# work does one task of a claim.
work() {
	eval "$(echo "$1" | jq -r '@sh "id=\(.execution_id | sub(".*:"; "")) fence=\(.lease.fence) index=\(.lease.attempt_index) name=\(.input.name) width=\(.input.width) cause=\(.resumed.cause // "")"')"
	at=/v1/executions/$id
	echo "claimed $id, attempt $index${cause:+, resumed by a $cause}"
	renew >/dev/null 2>&1 &
	renewing=$!
	attempt
	kill "$renewing" 2>/dev/null || : # the lease is gone, and the renewals may have noticed
	wait "$renewing" 2>/dev/null || :
	fence=
}

me=$(jq -nc --arg worker_instance_id "$INSTANCE" --arg lane "$LANE" '{worker_id: "shell-worker", $worker_instance_id, lanes: [$lane], kinds: ["thumbnail"]}')
call POST /v1/workers "$me" | jq -r '"register: " + .outcome'
claim=$(echo "$me" | jq -c '. + {wait_ms: 5000, lease_ttl_ms: 10000}')
while :; do
	answer=$(call POST /v1/work/claim "$claim")
	task=$(echo "$answer" | jq -c '.tasks[0] // empty')
	if [ -n "$task" ]; then
		work "$task"
	elif echo "$answer" | jq -e .drain >/dev/null; then
		echo 'told to drain: leaving'
		exit 0
	fi
	call POST "/v1/workers/$INSTANCE/heartbeat" '{}' >/dev/null
done
