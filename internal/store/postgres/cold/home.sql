-- Where a program from before schemas could be chosen finds its tables: by the search path of the session.
-- name: older_place
select n.nspname::text from pg_catalog.pg_namespace n join pg_catalog.pg_class c on c.relnamespace = n.oid where c.oid = pg_catalog.to_regclass('schema_migration');

-- Which of two schemas have the tables of a store. Only the catalogue is read: the tables may be those of others.
-- name: find_stores
select n.nspname::text, columns.of_steps, columns.of_installation
from pg_catalog.pg_namespace n
cross join lateral (
  select (select array_agg(a.attname::text order by a.attnum) from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
    where c.relnamespace = n.oid and c.relname = 'schema_migration' and a.attnum > 0 and not a.attisdropped) as of_steps,
  (select array_agg(a.attname::text order by a.attnum) from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
    where c.relnamespace = n.oid and c.relname = 'installation' and a.attnum > 0 and not a.attisdropped) as of_installation) columns
where n.nspname = $1::text or n.nspname = $2::text
order by n.nspname <> $1::text;

-- What only a store of ours says. The columns are looked up first.
-- name: read_mark
select coalesce((select name from {schema}.schema_migration where version = 1), ''), coalesce(to_jsonb(i) ->> 'home', '') from {schema}.installation i;

-- Names of ours that something else has in a schema. $2: tables, $3: domains, $4: functions.
-- name: occupied
select 'table ' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1::text and (c.relname = any ($2::text[]) or c.relname ~ '^log_(seq|p[0-9]+)$')
union all select 'type ' || t.typname from pg_type t join pg_namespace n on n.oid = t.typnamespace where n.nspname = $1::text and t.typname = any ($3::text[])
union all select 'function ' || p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1::text and p.proname = any ($4::text[])
order by 1;

-- name: create_schema
create schema {name};

-- name: may_create
select current_user::text, current_database()::text, n.oid is not null, coalesce(has_schema_privilege(n.oid, 'CREATE'), false), has_database_privilege(current_database(), 'CREATE')
from (select) one left join pg_namespace n on n.nspname = $1::text;

-- name: settle_home
update {schema}.installation set home = $1::text where home is null;

-- The statements that move everything of ours from one schema ($1) to another ($2), and whether this role may. Indexes and sequences of
-- columns go with their table. $3: tables, $4: domains, $5: functions.
-- name: moves
select statement, pg_has_role(owner, 'USAGE') from (
  select 1 as part, format('alter table %I.%I set schema %I', $1::text, c.relname, $2::text) as statement, c.relowner as owner
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1::text and c.relkind in ('r', 'p') and (c.relname = any ($3::text[]) or c.relname ~ '^log_p[0-9]+$')
  union all
  select 2, format('alter sequence %I.%I set schema %I', $1::text, c.relname, $2::text), c.relowner
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1::text and c.relkind = 'S' and c.relname = 'log_seq'
  union all
  select 3, format('alter domain %I.%I set schema %I', $1::text, t.typname, $2::text), t.typowner
  from pg_type t join pg_namespace n on n.oid = t.typnamespace where n.nspname = $1::text and t.typtype = 'd' and t.typname = any ($4::text[])
  union all
  select 4, format('alter function %s set schema %I', p.oid::regprocedure, $2::text), p.proowner
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1::text and p.proname = any ($5::text[])) ours
order by part, statement;

-- Nothing that runs holds a lock on a table while another waits for it: all of them, or none in time.
-- name: lock_all
select format('lock table %s in access exclusive mode', string_agg(format('%I.%I', n.nspname, c.relname), ', ' order by c.relname))
from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1::text and c.relkind in ('r', 'p') and c.relname = any ($2::text[]);

-- name: repath
select format('alter function %s set search_path = %I, pg_temp', p.oid::regprocedure, $1::text)
from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1::text and p.proname = any ($2::text[]);

-- A program from before schemas could be chosen finds this in place of its tables, and refuses to start.
-- name: leave_mark
create table {schema}.schema_migration (version int primary key, name text not null, applied_at timestamptz not null default now());

-- name: write_mark
insert into {schema}.schema_migration (version, name) values (1000000, $1::text);
