-- Everything that has a checksum. The columns are those that the statements of every day read.

-- name: scrub_executions
select id, class_id, n, origin, input, stage, order_key, version, state, draw from {schema}.exec where stage > 0;

-- name: scrub_leases
select id, epoch, lease_id, ended_at, n, ended_by, patch_state, body, patch_body, result from {schema}.lease;

-- name: scrub_docs
select kind, owner, key, body, data, expires_at from {schema}.doc;

-- name: scrub_log
select seq, body from {schema}.log where body <> '';
