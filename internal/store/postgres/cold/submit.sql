-- These run in transactions of users, under their search path.
-- name: installation_exists
select pg_catalog.has_schema_privilege(n.oid, 'USAGE'), c.oid is not null
from pg_catalog.pg_namespace n left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'installation' and c.relkind = 'r'
where n.nspname = $1::text;

-- Where a server that does not say so has its tables: by the search path, as programs from before schemas could be chosen find them.
-- name: find_installation
select n.nspname::text from pg_catalog.pg_namespace n join pg_catalog.pg_class c on c.relnamespace = n.oid where c.oid = pg_catalog.to_regclass('installation');

-- name: installation
select id::text from {schema}.installation;

-- name: submit
select outcome, found_id::text, found_n, found_fingerprint, found_expires_at, found_body
from {schema}.submit_to_inbox($1::smallint, $2::text, $3::text, $4::bytea, $5::bigint, $6::uuid, $7::smallint, $8::bytea, $9::bigint);

-- name: glance
select (extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint, (select l.settings::text from {schema}.lane l where l.name = $1::text),
  (select d.body from {schema}.doc d where d.owner = '' and d.kind = $2::smallint and d.key = $3::bytea);
