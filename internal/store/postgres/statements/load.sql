-- Rows are locked in the order of the arguments, which come sorted.
-- name: lock_keys
select i.space, i.namespace, i.key, i.fingerprint, i.id, i.n, i.expires_at
from unnest($1::smallint[], $2::text[], $3::text[]) w (space, namespace, key)
cross join lateral (select * from {schema}.idem k where k.key = w.key and k.namespace = w.namespace and k.space = w.space for update) i;

-- name: lock_free_keys
select i.space, i.namespace, i.key, i.fingerprint, i.id, i.n, i.expires_at
from unnest($1::smallint[], $2::text[], $3::text[]) w (space, namespace, key)
cross join lateral (select * from {schema}.idem k where k.key = w.key and k.namespace = w.namespace and k.space = w.space for update skip locked) i;

-- name: read_keys
select i.space, i.namespace, i.key, i.fingerprint, i.id, i.n, i.expires_at
from unnest($1::smallint[], $2::text[], $3::text[]) w (space, namespace, key)
cross join lateral (select * from {schema}.idem k where k.key = w.key and k.namespace = w.namespace and k.space = w.space offset 0) i;

-- name: lock_executions
select ctid, id, class_id, n, origin, case when $2::bool then input end, stage, order_key, version, state, draw
from {schema}.exec where id = any ($1::uuid[]) order by id for update;

-- name: lock_free_executions
select ctid, id, class_id, n, origin, case when $2::bool then input end, stage, order_key, version, state, draw
from {schema}.exec where id = any ($1::uuid[]) order by id for update skip locked;

-- Rows that another transaction has made, and that nobody sees before it commits, are waited for by making them too. What these make
-- is never committed.
-- name: try_executions
insert into {schema}.exec (id, class_id, n, origin, input, stage, order_key, version, state)
select distinct id, 0, 0, ''::bytea, ''::bytea, 0, 0, 0, ''::bytea from unnest($1::uuid[]) w (id) order by id on conflict do nothing;

-- name: try_keys
insert into {schema}.idem (space, namespace, key, fingerprint, id, n, expires_at)
select w.space, w.namespace, w.key, ''::bytea, '00000000-0000-0000-0000-000000000000'::uuid, 0, 0
from unnest($1::smallint[], $2::text[], $3::text[]) w (space, namespace, key) on conflict do nothing;

-- name: try_docs
insert into {schema}.doc (kind, owner, key, expires_at)
select w.kind, w.owner, w.key, 0 from unnest($1::smallint[], $2::text[], $3::bytea[]) w (kind, owner, key) on conflict do nothing;

-- name: read_executions
select ctid, id, class_id, n, origin, case when $2::bool then input end, stage, order_key, version, state, draw
from {schema}.exec where id = any ($1::uuid[]);

-- name: existing_executions
select id from {schema}.exec where id = any ($1::uuid[]);

-- name: results
select id, epoch, lease_id, ended_at, n, ended_by, patch_state, body, patch_body, result
from {schema}.lease where id = any ($1::uuid[]) and result is not null;

-- Rows whose executions are held by others come without them, and stay locked. The execution is looked up in a subquery that locks,
-- because that cannot become a plan that scans. The first row of each queue is told whether others hold it or not; where no row is free,
-- the other columns are null.
-- name: pick
with w as materialized (
  select w.class_id, w.block, w.floor, w.lim, w.place, (
    select q.order_key from {schema}.queue q where q.class_id = w.class_id and q.block = w.block and q.order_key >= w.floor
    order by q.order_key limit 1) as first
  from unnest($1::int[], $2::int[], $3::bigint[], $4::int[]) with ordinality w (class_id, block, floor, lim, place))
select w.place, w.block, w.first, r.*
from w left join lateral (
  select h.order_key as place_key, h.ctid as place_at, e.* from (
    select q.ctid, q.order_key, q.id from {schema}.queue q
    where q.class_id = w.class_id and q.block = w.block and q.order_key >= w.floor
    order by q.order_key, q.id limit w.lim for update skip locked) h
  left join lateral (
    select x.ctid, x.id, x.class_id, x.n, x.origin, x.input, x.stage, x.order_key, x.version, x.state, x.draw from {schema}.exec x
    where x.id = h.id for update skip locked) e on true) r on true
where w.first is not null;

-- The same of the best rows alone: the others stay locked, but their executions are not looked at. There is an answer for each of
-- them, held by others or not, so that it is known how many there are.
-- name: pick_best
with w as materialized (
  select w.class_id, w.block, w.floor, w.lim, w.place, (
    select q.order_key from {schema}.queue q where q.class_id = w.class_id and q.block = w.block and q.order_key >= w.floor
    order by q.order_key limit 1) as first
  from unnest($1::int[], $2::int[], $3::bigint[], $4::int[]) with ordinality w (class_id, block, floor, lim, place)),
r as materialized (
  select w.place, h.order_key, h.ctid, h.id, count(*) over () as found
  from w cross join lateral (
    select q.ctid, q.order_key, q.id from {schema}.queue q
    where q.class_id = w.class_id and q.block = w.block and q.order_key >= w.floor
    order by q.order_key, q.id limit w.lim for update skip locked) h
  where w.first is not null
  order by h.order_key, h.id limit $5::int)
select w.place, w.block, w.first, r.order_key, r.ctid, r.found, e.*
from w left join r on r.place = w.place
left join lateral (
  select x.ctid, x.id, x.class_id, x.n, x.origin, x.input, x.stage, x.order_key, x.version, x.state, x.draw from {schema}.exec x
  where x.id = r.id for update skip locked) e on true
where w.first is not null;

-- name: read_queue
select w.place, w.class_id, w.block, r.order_key, r.id
from unnest($1::int[], $2::int[], $3::bigint[], $4::int[]) with ordinality w (class_id, block, floor, lim, place)
cross join lateral (
  select q.order_key, q.id from {schema}.queue q
  where q.class_id = w.class_id and q.block = w.block and q.order_key >= w.floor
  order by q.order_key, q.id limit w.lim) r
order by w.place, r.order_key, r.id;

-- From number to number: the numbers are few, the rows under each may be many.
-- name: blocks
select w.class_id, b.block from unnest($1::int[]) w (class_id)
cross join lateral (
  with recursive used (block) as (
    select (select q.block from {schema}.queue q where q.class_id = w.class_id and q.block > 0 order by q.block limit 1)
    union all
    select (select q.block from {schema}.queue q where q.class_id = w.class_id and q.block > u.block order by q.block limit 1)
    from used u where u.block is not null)
  select block from used where block is not null) b
order by w.class_id, b.block;

-- name: history
select l.id, l.epoch, l.lease_id, l.ended_at, l.n, l.ended_by, l.patch_state, l.body, l.patch_body, l.result
from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[]) with ordinality w (id, low, high, lim, place)
cross join lateral (
  select * from {schema}.lease h where h.id = w.id and h.epoch between w.low and w.high order by h.epoch limit w.lim) l
order by w.place, l.epoch;

-- A counter that is not there is made, so that there is something to lock.
-- name: make_counters
insert into {schema}.counter (key, n) select distinct key, 0 from unnest($1::bytea[]) w (key) order by key on conflict do nothing;

-- name: lock_counters
select key, n from {schema}.counter where key = any ($1::bytea[]) order by key for update;

-- name: read_counters
select key, n from {schema}.counter where key = any ($1::bytea[]);

-- name: share_lanes
select lane_id, name, settings::text, revision, since, counting, registered_by from {schema}.lane where lane_id = any ($1::int[])
order by lane_id for share;

-- name: lock_lanes
select lane_id, name, settings::text, revision, since, counting, registered_by from {schema}.lane where lane_id = any ($1::int[])
order by lane_id for update;

-- name: read_lanes
select lane_id, name, settings::text, revision, since, counting, registered_by from {schema}.lane where lane_id = any ($1::int[]);

-- name: lock_docs
select d.kind, d.owner, d.key, d.body, d.data, d.expires_at
from unnest($1::smallint[], $2::text[], $3::bytea[]) w (kind, owner, key)
cross join lateral (select * from {schema}.doc o where o.owner = w.owner and o.kind = w.kind and o.key = w.key for update) d;

-- name: lock_free_docs
select d.kind, d.owner, d.key
from unnest($1::smallint[], $2::text[], $3::bytea[]) w (kind, owner, key)
cross join lateral (select * from {schema}.doc o where o.owner = w.owner and o.kind = w.kind and o.key = w.key for update skip locked) d;

-- name: read_docs
select d.kind, d.owner, d.key, d.body, d.data, d.expires_at
from unnest($1::smallint[], $2::text[], $3::bytea[]) w (kind, owner, key)
cross join lateral (select * from {schema}.doc o where o.owner = w.owner and o.kind = w.kind and o.key = w.key offset 0) d;

-- name: scan_docs
select kind, owner, key, body, data, expires_at from {schema}.doc
where owner = $1::text and kind = $2::smallint and key >= $3::bytea and key < $4::bytea order by key limit $5::bigint;

-- name: scan_all_docs
select kind, owner, key, body, data, expires_at from {schema}.doc
where owner = $1::text and kind = $2::smallint and key >= $3::bytea order by key limit $4::bigint;

-- name: owned_docs
select d.kind, d.owner, d.key, d.body, d.data, d.expires_at
from unnest($1::smallint[], $2::text[]) with ordinality w (kind, owner, place)
cross join lateral (select * from {schema}.doc o where o.owner = w.owner and o.kind = w.kind order by o.key offset 0) d
order by w.place, d.key;

-- name: take_inbox
select id, n, body from {schema}.inbox where id > $2::uuid order by id limit $1::int for update skip locked;

-- name: read_inbox
select id, n, body from {schema}.inbox where id > $2::uuid order by id limit $1::int;
