-- name: take_due
with due as materialized (
  select seq from {schema}.timer where due <= $4::bigint and kind <> all ($3::smallint[]) order by due, seq limit $1::int for update skip locked
)
update {schema}.timer t set due = $4::bigint + $2::bigint, tries = t.tries + 1
where t.seq = any (array (select seq from due))
returning t.seq, t.at, t.kind, t.tries - 1, t.ids, t.texts;

-- name: take_due_now
with now as materialized (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms), due as materialized (
  select seq from {schema}.timer where due <= (select ms from now) and kind <> all ($3::smallint[]) order by due, seq limit $1::int
  for update skip locked
)
update {schema}.timer t set due = (select ms from now) + $2::bigint, tries = t.tries + 1
where t.seq = any (array (select seq from due))
returning t.seq, t.at, t.kind, t.tries - 1, t.ids, t.texts;

-- name: timers_ahead
select seq, at, kind, tries, ids, texts from {schema}.timer where due > $1::bigint and due <= $2::bigint and seq > $3::bigint order by seq limit $4::int;

-- name: hide_timers
with kept as materialized (select seq from {schema}.timer where seq = any ($1::bigint[]) and due < $3::bigint + $2::bigint for update skip locked)
update {schema}.timer t set due = $3::bigint + $2::bigint where t.seq = any (array (select seq from kept));

-- name: hide_timers_now
with until as materialized (select (extract(epoch from clock_timestamp()) * 1000)::bigint + $2::bigint as ms), kept as materialized (
  select seq from {schema}.timer where seq = any ($1::bigint[]) and due < (select ms from until) for update skip locked
)
update {schema}.timer t set due = (select ms from until)
where t.seq = any (array (select seq from kept));

-- $4 is a position up to which every number of the log is known.
-- name: poll
select (extract(epoch from clock_timestamp()) * 1000)::bigint, i.dictionary,
  array (select exists (select from {schema}.queue q where q.class_id = w.class_id and q.block = w.block and q.order_key < w.before)
    from unnest($1::int[], $2::int[], $3::bigint[]) with ordinality w (class_id, block, before, place) order by place),
  coalesce((select due from {schema}.timer order by due limit 1), 0),
  (select coalesce(max(seq) filter (where seq = greatest($4::bigint, i.log_floor) + place), greatest($4::bigint, i.log_floor))
    from (select seq, row_number() over (order by seq) as place from {schema}.log where seq > greatest($4::bigint, i.log_floor) order by seq limit 10000) l),
  coalesce((select max(seq) from {schema}.log), 0),
  (select position from {schema}.projection),
  coalesce((select true from {schema}.inbox order by id limit 1), false), i.log_floor,
  array (select coalesce((select true from {schema}.doc d where d.owner = w.owner and d.kind = w.kind and d.key = w.key limit 1), false)
    from unnest($5::smallint[], $6::text[], $7::bytea[]) with ordinality w (kind, owner, key, place) order by place),
  {incarnation}
from {schema}.installation i;

-- $3 is a number that was missing before, or 0. If it still is, the last column is a transaction id that was given just now.
-- name: read_log
select seq, at, body, (select log_floor from {schema}.installation), (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint),
  (select case when $3::bigint > 0 and not exists (select from {schema}.log where seq = $3::bigint) then pg_current_xact_id()::text::bigint else 0 end)
from (
  select seq, at, body, sum(octet_length(body)) over (order by seq) - octet_length(body) as before
  from {schema}.log where seq > greatest($1::bigint, (select log_floor from {schema}.installation)) order by seq limit $2::int) l
where before < $4::bigint order by seq;

-- name: fill_log
insert into {schema}.log (seq, at, body)
select seq, $2::bigint, ''::bytea from unnest($1::bigint[]) w (seq) order by seq on conflict do nothing;

-- name: move_projection
update {schema}.projection set position = $2::bigint where position = $1::bigint returning position;

-- name: index_end
select position from {schema}.log_index;

-- name: move_index
update {schema}.log_index set position = $2::bigint where position = $1::bigint returning position;

-- name: put_mentions
insert into {schema}.mention (era, subject, first, seqs)
select era, subject, first, string_to_array(seqs, ',')::bigint[]
from unnest($1::int[], $2::uuid[], $3::bigint[], $4::text[]) w (era, subject, first, seqs) order by era, subject, first;

-- Of each era the row that may hold the position itself, and those behind it.
-- name: log_of
select seq, at, body from (
  select seq, at, body, sum(octet_length(body)) over (order by seq) - octet_length(body) as before
  from {schema}.log where seq = any (array (
  select s.seq from generate_series((greatest($2::bigint, (select log_floor from {schema}.installation)) >> 20)::int,
    (select (position >> 20)::int from {schema}.log_index)) e (era)
  cross join lateral (
    select m.seqs from {schema}.mention m where m.era = e.era and m.subject = $1::uuid and m.first >= coalesce(
      (select max(b.first) from {schema}.mention b where b.era = e.era and b.subject = $1::uuid and b.first <= $2::bigint + 1), 0)
    order by m.first limit $3::int + 1) m
  cross join lateral unnest(m.seqs) s (seq)
  where s.seq > $2::bigint and s.seq > (select log_floor from {schema}.installation) order by s.seq limit $3::int))) l
where before < $4::bigint order by seq;

-- name: newest_log_of
select seq, at, body from (
  select seq, at, body, sum(octet_length(body)) over (order by seq desc) - octet_length(body) as before
  from {schema}.log where seq = any (array (
  select s.seq from generate_series((greatest($2::bigint, (select log_floor from {schema}.installation)) >> 20)::int,
    (select (position >> 20)::int from {schema}.log_index)) e (era)
  cross join lateral (
    select m.seqs from {schema}.mention m where m.era = e.era and m.subject = $1::uuid and m.first >= coalesce(
      (select max(b.first) from {schema}.mention b where b.era = e.era and b.subject = $1::uuid and b.first <= $2::bigint + 1), 0)
    order by m.first desc limit $3::int + 1) m
  cross join lateral unnest(m.seqs) s (seq)
  where s.seq > $2::bigint and s.seq > (select log_floor from {schema}.installation) order by s.seq desc limit $3::int))) l
where before < $4::bigint order by seq;

-- Nobody removes them before the transaction ends; whoever changes them otherwise does not wait.
-- name: hold_executions
select id from {schema}.exec where id = any ($1::uuid[]) and stage > 0 order by id for key share;

-- name: put_search
insert into {schema}.search (id, created_at, completed_at, updated_at, class_id, status, reason, next, priority, terms)
select ($1::uuid[])[i], ($2::bigint[])[i], ($3::bigint[])[i], ($4::bigint[])[i], ($5::int[])[i], ($6::smallint[])[i], ($7::smallint[])[i],
  ($8::smallint[])[i], ($9::smallint[])[i], string_to_array(w.terms, chr(31))
from unnest($10::text[]) with ordinality w (terms, i)
on conflict (id) do update set completed_at = excluded.completed_at, updated_at = excluded.updated_at, status = excluded.status,
  reason = excluded.reason, next = excluded.next, priority = excluded.priority, terms = excluded.terms;

-- name: log_identity
select log_id from {schema}.installation;

-- name: log_standing
select greatest(i.log_floor, p.position) from {schema}.installation i, {schema}.projection p;

-- name: all_lanes
select lane_id, name, settings::text, revision, since, counting, registered_by from {schema}.lane order by lane_id;

-- name: all_classes
select class_id, namespace, lane, kind, capabilities, fairness_key, needs, retired_at from {schema}.class order by class_id;

-- name: all_rules
select kind, owner, key, body, data, expires_at from {schema}.doc where owner = '' and kind >= $1::smallint order by kind, key;

-- name: some_classes
select class_id, namespace, lane, kind, capabilities, fairness_key, needs from {schema}.class where class_id = any ($1::int[]);

-- What is there already is looked up by its key beforehand: a join of the tables would read all lanes and classes for each registration.
-- name: register
with known_lanes as materialized (
  select name from {schema}.lane where name = any ($1::text[])
), known_classes as materialized (
  select digest from {schema}.class where digest = any ($7::bytea[])
), lanes as (
  insert into {schema}.lane (name, settings, revision, since, counting, registered_by)
  select name, settings::jsonb, revision, since, counting, registered_by
  from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $6::text[]) w (name, settings, revision, since, counting, registered_by)
  where not exists (select from known_lanes k where k.name = w.name)
  order by name on conflict do nothing returning 1
), classes as (
  insert into {schema}.class (digest, namespace, lane, kind, capabilities, fairness_key, needs)
  select digest, namespace, lane, kind, string_to_array(capabilities, ','), fairness_key, needs
  from unnest($7::bytea[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[])
    w (digest, namespace, lane, kind, capabilities, fairness_key, needs)
  where not exists (select from known_classes k where k.digest = w.digest)
  order by digest on conflict do nothing returning 1
), revived as (
  update {schema}.class c set retired_at = 0 where c.digest = any ($7::bytea[]) and c.retired_at > 0 returning 1
)
update {schema}.installation set dictionary = dictionary + 1
where exists (select from lanes) or exists (select from classes) or exists (select from revived)
returning dictionary;

-- name: registered_lanes
select lane_id, name, settings::text, revision, since, counting, registered_by from {schema}.lane where name = any ($1::text[]);

-- name: registered_classes
select class_id, namespace, lane, kind, capabilities, fairness_key, needs, digest from {schema}.class where digest = any ($1::bytea[]);

-- name: notify
select pg_notify($1::text, $2::text);

-- name: size
select pg_database_size(current_database())::bigint;

-- This program runs ($1), as one that knows steps up to $3. The answer is the last step of the store and the oldest that a program must
-- know; 0: the last one.
-- name: beat
with seen as (
  insert into {schema}.program as p (id, version, known, started_at, seen_at)
  select $1::text, $2::text, $3::int, ms, ms from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) clock
  on conflict (id) do update set seen_at = excluded.seen_at)
select version, coalesce(oldest, 0) from {schema}.schema_migration order by version desc limit 1;

-- name: leave_program
delete from {schema}.program where id = $1::text;
