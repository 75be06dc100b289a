-- New rows take values of fixed width from their arrays by position: that is cheaper than a set a column.
-- Rows that this transaction has locked are found by their place, which cannot change before it ends. Rows that never change
-- are deleted by their place too; those that do are locked before it is read.

-- name: insert_keys
insert into {schema}.idem (space, namespace, key, fingerprint, id, n, expires_at)
select ($1::smallint[])[i], w.namespace, w.key, w.fingerprint, ($5::uuid[])[i], ($6::smallint[])[i], ($7::bigint[])[i]
from unnest($2::text[], $3::text[], $4::bytea[]) with ordinality w (namespace, key, fingerprint, i);

-- name: replace_keys
update {schema}.idem i set fingerprint = w.fingerprint, id = w.id, n = w.n, expires_at = w.expires_at
from unnest($1::smallint[], $2::text[], $3::text[], $4::bytea[], $5::uuid[], $6::smallint[], $7::bigint[])
  w (space, namespace, key, fingerprint, id, n, expires_at)
where i.key = any ($3::text[]) and i.key = w.key and i.namespace = w.namespace and i.space = w.space;

-- name: drop_keys
delete from {schema}.idem where ctid = any (array (
  select k.ctid from unnest($1::smallint[], $2::text[], $3::text[]) w (space, namespace, key)
  cross join lateral (select i.ctid from {schema}.idem i where i.key = w.key and i.namespace = w.namespace and i.space = w.space for update) k))
and expires_at <= $4::bigint;

-- name: insert_executions
insert into {schema}.exec (id, class_id, n, origin, input, stage, order_key, state, version, draw)
select ($1::uuid[])[i], ($2::int[])[i], ($3::smallint[])[i], w.origin, w.input, ($6::smallint[])[i], ($7::bigint[])[i], w.state, ($9::int[])[i], $10::int
from unnest($4::bytea[], $5::bytea[], $8::bytea[]) with ordinality w (origin, input, state, i);

-- name: update_executions
update {schema}.exec e set stage = w.stage, order_key = w.order_key, version = (e.version & 2147483647) + 1, draw = $5::int, state = w.state
from unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bytea[]) w (id, stage, order_key, state)
where e.id = any ($1::uuid[]) and e.id = w.id;

-- name: update_locked_executions
update {schema}.exec e set stage = w.stage, order_key = w.order_key, version = (e.version & 2147483647) + 1, draw = $5::int, state = w.state
from unnest($1::tid[], $2::smallint[], $3::bigint[], $4::bytea[]) w (place, stage, order_key, state)
where e.ctid = any ($1::tid[]) and e.ctid = w.place;

-- Fails (logarithm of zero) unless every row is as remembered and the clock stands before the bound.
-- name: update_remembered
with written as (
  update {schema}.exec e set stage = w.stage, order_key = w.order_key, version = (e.version & 2147483647) + 1, draw = $8::int, state = w.state
  from unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bytea[], $5::int[], $6::int[]) w (id, stage, order_key, state, version, draw)
  where e.id = any ($1::uuid[]) and e.id = w.id and e.version = w.version and e.draw = w.draw
  returning 1
)
select ln((count(*) = cardinality($1::uuid[]) and (extract(epoch from clock_timestamp()) * 1000)::bigint < $7::bigint)::int) from written;

-- name: hold_lanes
select from {schema}.lane where lane_id = any ($1::int[]) order by lane_id for share;

-- Both fail (logarithm of zero) unless it is as assumed.
-- name: assume_empty
select ln((not exists (
  select from unnest($1::int[], $2::int[], $3::bigint[]) w (class_id, block, floor)
  cross join lateral (select from {schema}.queue q where q.class_id = w.class_id and q.block = w.block and q.order_key >= w.floor limit 1) r))::int);

-- name: assume_docs
select ln((count(*) = cardinality($1::smallint[]))::int)
from unnest($1::smallint[], $2::bytea[], $3::bytea[]) w (kind, key, body)
cross join lateral (select d.body from {schema}.doc d where d.owner = '' and d.kind = w.kind and d.key = w.key offset 0) r
where r.body = w.body;

-- name: insert_history
insert into {schema}.lease (id, epoch, lease_id, ended_at, n, ended_by, body, result)
select ($1::uuid[])[i], ($2::bigint[])[i], ($3::uuid[])[i], ($4::bigint[])[i], ($5::smallint[])[i], ($6::smallint[])[i], w.body, w.result
from unnest($7::bytea[], $8::bytea[]) with ordinality w (body, result, i);

-- name: replace_history
insert into {schema}.lease (id, epoch, lease_id, ended_at, n, ended_by, body, result)
select ($1::uuid[])[i], ($2::bigint[])[i], ($3::uuid[])[i], ($4::bigint[])[i], ($5::smallint[])[i], ($6::smallint[])[i], w.body, w.result
from unnest($7::bytea[], $8::bytea[]) with ordinality w (body, result, i)
on conflict (id, epoch) do update set lease_id = excluded.lease_id, ended_at = excluded.ended_at, ended_by = excluded.ended_by,
  body = excluded.body, result = excluded.result, patch_state = 0, patch_body = null;

-- name: patch_history
update {schema}.lease l set patch_state = w.state, patch_body = w.body
from unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::bytea[]) w (id, epoch, state, body)
where l.id = any ($1::uuid[]) and l.id = w.id and l.epoch = w.epoch;

-- name: drop_history
delete from {schema}.lease where ctid = any (array (
  select r.ctid from unnest($1::uuid[], $2::bigint[]) w (id, epoch)
  cross join lateral (select l.ctid from {schema}.lease l where l.id = w.id and l.epoch = w.epoch for update) r));

-- name: enqueue
insert into {schema}.queue (class_id, block, order_key, id)
select ($1::int[])[i], ($2::int[])[i], ($3::bigint[])[i], w.id from unnest($4::uuid[]) with ordinality w (id, i);

-- name: dequeue
delete from {schema}.queue where ctid = any (array (
  select r.ctid from unnest($1::int[], $2::int[], $3::bigint[], $4::uuid[]) w (class_id, block, order_key, id)
  cross join lateral (
    select q.ctid from {schema}.queue q
    where q.class_id = w.class_id and q.block = w.block and q.order_key = w.order_key and q.id = w.id offset 0) r));

-- name: dequeue_picked
delete from {schema}.queue where ctid = any ($1::tid[]);

-- Lists of one timer are slices of the two arrays that hold all of them.
-- name: add_timers
insert into {schema}.timer (due, at, kind, ids, texts)
select w.at, w.at, w.kind, ($5::uuid[])[w.id_from:w.id_to], ($8::bytea[])[w.text_from:w.text_to]
from unnest($1::bigint[], $2::smallint[], $3::int[], $4::int[], $6::int[], $7::int[]) w (at, kind, id_from, id_to, text_from, text_to);

-- name: drop_timers
delete from {schema}.timer where seq = any ($1::bigint[]);

-- name: change_counters
insert into {schema}.counter as c (key, n) select * from unnest($1::bytea[], $2::bigint[])
on conflict (key) do update set n = c.n + excluded.n;

-- Fails (logarithm of zero) unless it is as assumed.
-- name: assume_counters
select ln((not exists (
  select from unnest($1::bytea[], $2::bigint[]) w (key, most)
  cross join lateral (select o.n from {schema}.counter o where o.key = w.key offset 0) r
  where r.n > w.most))::int);

-- name: drop_counters
delete from {schema}.counter where key = any ($1::bytea[]) and n = 0;

-- name: update_lanes
update {schema}.lane l set settings = w.settings::jsonb, revision = w.revision, since = w.since, counting = w.counting, registered_by = w.registered_by
from unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $6::text[]) w (lane_id, settings, revision, since, counting, registered_by)
where l.lane_id = w.lane_id;

-- name: retire_classes
update {schema}.class c set retired_at = w.since from unnest($1::int[], $2::bigint[]) w (class_id, since)
where c.class_id = w.class_id and c.retired_at = 0;

-- name: drop_classes
delete from {schema}.class c using unnest($1::int[], $2::bigint[]) w (class_id, since)
where c.class_id = w.class_id and c.retired_at = w.since and c.retired_at > 0;

-- name: insert_docs
insert into {schema}.doc (kind, owner, key, body, data, expires_at)
select * from unnest($1::smallint[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[]);

-- name: put_docs
insert into {schema}.doc (kind, owner, key, body, data, expires_at)
select * from unnest($1::smallint[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[])
on conflict (owner, kind, key) do update set body = excluded.body, data = excluded.data, expires_at = excluded.expires_at;

-- name: drop_docs
delete from {schema}.doc where ctid = any (array (
  select r.ctid from unnest($1::smallint[], $2::text[], $3::bytea[]) w (kind, owner, key)
  cross join lateral (select d.ctid from {schema}.doc d where d.owner = w.owner and d.kind = w.kind and d.key = w.key for update) r));

-- name: drop_inbox
delete from {schema}.inbox where id = any ($1::uuid[]);

-- name: free_ids
delete from {schema}.exec where id = any ($1::uuid[]) and stage = 0;

-- name: remove_executions
delete from {schema}.exec where id = any ($1::uuid[]);

-- name: remove_history
delete from {schema}.lease where id = any ($1::uuid[]);

-- name: remove_docs
delete from {schema}.doc where owner = any ($1::text[]);

-- name: strip_docs
delete from {schema}.doc where owner = any ($1::text[]) and not kind = any ($2::smallint[]);

-- name: remove_search
delete from {schema}.search where id = any ($1::uuid[]);

-- The transaction has its id before it draws the number: whoever then misses the number can tell whether it may still come.
-- name: append_log
insert into {schema}.log (seq, at, body) select nextval('{schema}.log_seq'), $1::bigint, $2::bytea where pg_current_xact_id() is not null returning seq;
