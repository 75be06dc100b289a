-- These run in transactions of users, under their search path.
-- name: installation_exists
select pg_catalog.has_schema_privilege(n.oid, 'USAGE'), c.oid is not null
from pg_catalog.pg_namespace n left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'installation' and c.relkind = 'r'
where n.nspname = $1::text;

-- Where a server that does not say so has its tables: by the search path, as programs from before schemas could be chosen find them.
-- name: find_installation
select n.nspname::text from pg_catalog.pg_namespace n join pg_catalog.pg_class c on c.relnamespace = n.oid where c.oid = pg_catalog.to_regclass('installation');

-- The column outcomes says that every program on the store understands them (step 6).
-- name: installation
select i.id::text, pg_catalog.to_jsonb(i) ? 'outcomes' from {schema}.installation i;

-- The notification is delivered when the user's transaction commits; equal ones of one transaction are one.
-- name: submit
select outcome, found_id::text, found_n, found_fingerprint, found_expires_at, found_body,
  case when outcome = 0 and $8::bytea is not null then pg_catalog.pg_notify($10::text, $11::text)::text end
from {schema}.submit_to_inbox($1::smallint, $2::text, $3::text, $4::bytea, $5::bigint, $6::uuid, $7::smallint, $8::bytea, $9::bigint);

-- name: glance
select (extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint, (select l.settings::text from {schema}.lane l where l.name = $1::text),
  (select d.body from {schema}.doc d where d.owner = '' and d.kind = $2::smallint and d.key = $3::bytea);

-- A row that another transaction holds is not waited for: that could be a deadlock, or end in an error that aborts the user's transaction.
-- name: lock_own
select e.class_id, e.n, e.origin, e.stage, e.order_key, e.version, e.draw, e.state, c.namespace, c.lane, c.kind, c.fairness_key, c.needs,
  (extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint
from {schema}.exec e join {schema}.class c on c.class_id = e.class_id where e.id = $1::uuid and e.stage > 0 for update of e skip locked;

-- name: is_there
select exists (select from {schema}.exec e where e.id = $1::uuid and e.stage > 0);

-- Docs of one owner: by kind and key, or all of a kind. $2 is JSON, because not every driver passes arrays; keys are in base64.
-- name: own_docs
select d.kind, d.key, d.body, d.data, d.expires_at
from pg_catalog.jsonb_to_recordset($2::jsonb) w (kind smallint, key text)
cross join lateral (
  select o.kind, o.key, o.body, o.data, o.expires_at from {schema}.doc o
  where o.owner = $1::text and o.kind = w.kind and (w.key is null or o.key = pg_catalog.decode(w.key, 'base64'))) d
order by d.kind, d.key;

-- name: leave_doc
insert into {schema}.doc (kind, owner, key, body, data, expires_at) values ($1::smallint, $2::text, $3::bytea, $4::bytea, $5::bytea, $6::bigint)
on conflict (owner, kind, key) do update set body = excluded.body, data = excluded.data, expires_at = excluded.expires_at;

-- name: leave
with marked as (update {schema}.exec set version = version | (-2147483648)::int, draw = $3::int where id = $1::uuid returning 1),
  noted as (insert into {schema}.inbox (id, n, body) values ($1::uuid, $2::smallint, ''::bytea) on conflict do nothing)
select count(*), pg_catalog.pg_notify($4::text, $5::text)::text from marked;
