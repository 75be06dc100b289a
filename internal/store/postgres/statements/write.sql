-- Values of fixed width are taken from their arrays by position: that is cheaper than a set a column. Rows that never change are
-- deleted by their place; those that do are locked before it is read.

-- name: insert_keys
insert into idem (space, namespace, key, fingerprint, id, n, expires_at)
select * from unnest($1::smallint[], $2::text[], $3::text[], $4::bytea[], $5::uuid[], $6::smallint[], $7::bigint[]);

-- name: replace_keys
update idem i set fingerprint = w.fingerprint, id = w.id, n = w.n, expires_at = w.expires_at
from unnest($1::smallint[], $2::text[], $3::text[], $4::bytea[], $5::uuid[], $6::smallint[], $7::bigint[])
  w (space, namespace, key, fingerprint, id, n, expires_at)
where i.key = any ($3::text[]) and i.key = w.key and i.namespace = w.namespace and i.space = w.space;

-- name: drop_keys
delete from idem where ctid = any (array (
  select k.ctid from unnest($1::smallint[], $2::text[], $3::text[]) w (space, namespace, key)
  cross join lateral (select i.ctid from idem i where i.key = w.key and i.namespace = w.namespace and i.space = w.space for update) k))
and expires_at <= $4::bigint;

-- name: insert_executions
insert into exec (id, class_id, n, origin, input, status, reason, next, order_key, state)
select * from unnest($1::uuid[], $2::int[], $3::smallint[], $4::bytea[], $5::bytea[], $6::smallint[], $7::smallint[], $8::smallint[],
  $9::bigint[], $10::bytea[]);

-- name: update_executions
update exec e set status = w.status, reason = w.reason, next = w.next, order_key = w.order_key, state = w.state
from unnest($1::uuid[], $2::smallint[], $3::smallint[], $4::smallint[], $5::bigint[], $6::bytea[]) w (id, status, reason, next, order_key, state)
where e.id = any ($1::uuid[]) and e.id = w.id;

-- name: insert_history
insert into lease (id, epoch, lease_id, ended_at, n, ended_by, body, result)
select * from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bytea[], $8::bytea[]);

-- name: replace_history
insert into lease (id, epoch, lease_id, ended_at, n, ended_by, body, result)
select * from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bytea[], $8::bytea[])
on conflict (id, epoch) do update set lease_id = excluded.lease_id, ended_at = excluded.ended_at, ended_by = excluded.ended_by,
  body = excluded.body, result = excluded.result, patch_state = 0, patch_body = null;

-- name: patch_history
update lease l set patch_state = w.state, patch_body = w.body
from unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::bytea[]) w (id, epoch, state, body)
where l.id = any ($1::uuid[]) and l.id = w.id and l.epoch = w.epoch;

-- name: enqueue
insert into queue (class_id, block, order_key, id) select * from unnest($1::int[], $2::int[], $3::bigint[], $4::uuid[]);

-- name: dequeue
delete from queue where ctid = any (array (
  select r.ctid from unnest($1::int[], $2::int[], $3::bigint[], $4::uuid[]) w (class_id, block, order_key, id)
  cross join lateral (
    select q.ctid from queue q
    where q.class_id = w.class_id and q.block = w.block and q.order_key = w.order_key and q.id = w.id offset 0) r));

-- Lists of one timer are slices of the two arrays that hold all of them.
-- name: add_timers
insert into timer (due, at, kind, ids, texts)
select w.at, w.at, w.kind, ($5::uuid[])[w.id_from:w.id_to], ($8::bytea[])[w.text_from:w.text_to]
from unnest($1::bigint[], $2::smallint[], $3::int[], $4::int[], $6::int[], $7::int[]) w (at, kind, id_from, id_to, text_from, text_to);

-- name: drop_timers
delete from timer where seq = any ($1::bigint[]);

-- name: change_counters
insert into counter as c (key, n) select * from unnest($1::bytea[], $2::bigint[])
on conflict (key) do update set n = c.n + excluded.n;

-- name: drop_counters
delete from counter where key = any ($1::bytea[]) and n = 0;

-- name: update_lanes
update lane l set settings = w.settings::jsonb, revision = w.revision, since = w.since, counting = w.counting, registered_by = w.registered_by
from unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $6::text[]) w (lane_id, settings, revision, since, counting, registered_by)
where l.lane_id = w.lane_id;

-- name: drop_classes
delete from class where class_id = any ($1::int[]);

-- name: insert_docs
insert into doc (kind, owner, key, body, data, expires_at)
select * from unnest($1::smallint[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[]);

-- name: put_docs
insert into doc (kind, owner, key, body, data, expires_at)
select * from unnest($1::smallint[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[])
on conflict (owner, kind, key) do update set body = excluded.body, data = excluded.data, expires_at = excluded.expires_at;

-- name: drop_docs
delete from doc where ctid = any (array (
  select r.ctid from unnest($1::smallint[], $2::text[], $3::bytea[]) w (kind, owner, key)
  cross join lateral (select d.ctid from doc d where d.owner = w.owner and d.kind = w.kind and d.key = w.key for update) r));

-- name: drop_inbox
delete from inbox where id = any ($1::uuid[]);

-- name: remove_executions
delete from exec where id = any ($1::uuid[]);

-- name: remove_history
delete from lease where id = any ($1::uuid[]);

-- name: remove_docs
delete from doc where owner = any ($1::text[]);

-- name: remove_search
delete from search where id = any ($1::uuid[]);

-- The transaction has its id before it draws the number: whoever then misses the number can tell whether it may still come.
-- name: append_log
with known as materialized (select pg_current_xact_id() is not null as ok)
insert into log (seq, at, body) select nextval('log_seq'), $1::bigint, $2::bytea from known where ok returning seq;
