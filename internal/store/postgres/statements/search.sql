-- The filter stands once and is put in for {filter}. A part that is null does not filter. These statements are planned for
-- their arguments, so that a part that is not used costs nothing.
-- name: filter
($1::smallint[] is null or s.status = any ($1))
and ($2::smallint[] is null or s.reason = any ($2))
and ($3::smallint[] is null or s.next = any ($3))
and ($4::text[] is null and $5::text[] is null and $6::text[] is null or s.class_id = any (array (
  select c.class_id from {schema}.class c
  where ($4 is null or c.lane = any ($4)) and ($5 is null or c.kind = any ($5)) and ($6 is null or c.namespace = any ($6)))))
and ($7::text[] is null or s.terms @> $7)
and ($8::text[] is null or s.terms && $8)
and ($9::text[] is null or s.terms && $9)
and ($10::text[] is null or s.terms && $10)
and ($11::text[] is null or s.terms && $11)
and ($12::text[] is null or s.terms && $12)
and ($13::bigint is null or s.created_at >= $13) and ($14::bigint is null or s.created_at < $14)
and ($15::bigint is null or s.completed_at >= $15) and ($16::bigint is null or s.completed_at > 0 and s.completed_at < $16)
and ($17::bigint is null or s.updated_at >= $17 or s.status = any ($26::smallint[])) and ($18::bigint is null or s.updated_at < $18)
and ($19::smallint is null or s.priority >= $19) and ($20::smallint is null or s.priority <= $20)
and ($21::bool is null or s.id between $22::uuid and $23::uuid or s.terms && $24::text[] or s.terms @> $25::text[])
and ($27::int[] is null or s.class_id = any ($27))

-- name: find_created_desc
select s.id, s.created_at, s.completed_at from {schema}.search s where {filter}
and ($29::uuid is null or (s.created_at, s.id) < ($28::bigint, $29::uuid)) order by s.created_at desc, s.id desc limit $30::int;

-- name: find_created_asc
select s.id, s.created_at, s.completed_at from {schema}.search s where {filter}
and ($29::uuid is null or (s.created_at, s.id) > ($28::bigint, $29::uuid)) order by s.created_at, s.id limit $30::int;

-- name: find_completed_desc
select s.id, s.created_at, s.completed_at from {schema}.search s where {filter} and s.completed_at > 0
and ($29::uuid is null or (s.completed_at, s.id) < ($28::bigint, $29::uuid)) order by s.completed_at desc, s.id desc limit $30::int;

-- name: find_id_asc
select s.id, s.created_at, s.completed_at from {schema}.search s where {filter}
and ($28::bigint is null or true) and ($29::uuid is null or s.id > $29::uuid) order by s.id limit $30::int;

-- name: find_first_of_lanes
select f.id, f.created_at, f.completed_at, f.lane from (
  select g.id, g.created_at, g.completed_at, c.lane, row_number() over (partition by c.lane order by g.created_at, g.id) as place
  from (select s.id, s.created_at, s.completed_at, s.class_id from {schema}.search s where {filter} order by s.created_at, s.id limit $28::int) g
  join {schema}.class c on c.class_id = g.class_id) f
where f.place <= $29::int order by f.created_at, f.id;

-- name: count
select count(*) from (select from {schema}.search s where {filter} limit $28::bigint) found;

-- name: count_by_state
select f.status, f.reason, f.next, ''::text, count(*)
from (select s.status, s.reason, s.next from {schema}.search s where {filter} limit $28::bigint) f group by f.status, f.reason, f.next;

-- name: count_by_lane
select 0::smallint, 0::smallint, 0::smallint, c.lane, sum(g.rows)::bigint
from (select f.class_id, count(*) as rows from (select s.class_id from {schema}.search s where {filter} limit $28::bigint) f group by f.class_id) g
join {schema}.class c on c.class_id = g.class_id group by c.lane;

-- name: count_by_lane_status
select g.status, 0::smallint, 0::smallint, c.lane, sum(g.rows)::bigint
from (select f.class_id, f.status, count(*) as rows from (select s.class_id, s.status from {schema}.search s where {filter} limit $28::bigint) f
  group by f.class_id, f.status) g
join {schema}.class c on c.class_id = g.class_id group by c.lane, g.status;

-- name: count_by_kind
select 0::smallint, 0::smallint, 0::smallint, c.kind, sum(g.rows)::bigint
from (select f.class_id, count(*) as rows from (select s.class_id from {schema}.search s where {filter} limit $28::bigint) f group by f.class_id) g
join {schema}.class c on c.class_id = g.class_id group by c.kind;

-- Every row found has the tag, or an instance, so that it has one term that begins so.
-- name: count_by_term
select 0::smallint, 0::smallint, 0::smallint, substr(t.term, length($29::text) + 1), count(*)
from (select s.terms from {schema}.search s where {filter} limit $28::bigint) f, unnest(f.terms) as t (term)
where starts_with(t.term, $29::text) group by t.term;
