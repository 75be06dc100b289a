-- Statements that run one by one, outside of trips.

-- name: backend
select pg_backend_pid();

-- name: session_defaults
select current_setting('default_transaction_isolation'), current_setting('default_transaction_read_only');

-- name: server
select current_setting('server_version_num')::int, current_setting('server_version'), current_setting('fsync'),
       current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('max_connections')::int;

-- What runs apart from trips may take its time, but holds nothing while its process is frozen. $3: for this transaction only.
-- name: limits
select set_config('statement_timeout', $1, $3), set_config('idle_in_transaction_session_timeout', $2, $3),
       set_config('search_path', 'pg_catalog, pg_temp', $3);

-- A copy of a database is another installation, and its log another log: positions in the two soon mean different things (E32).
-- name: name_copy
update {schema}.installation i set id = gen_random_uuid(), log_id = gen_random_uuid(), database = d.oid
from pg_database d where d.datname = current_database() and i.database <> d.oid;

-- name: standing
select i.id, i.log_id, i.log_floor, p.position, {incarnation} from {schema}.installation i, {schema}.projection p;

-- One of many processes migrates, or makes partitions: of those with this schema, and of programs from before schemas could be chosen.
-- name: schema_lock
select pg_advisory_xact_lock($1::int, $2::int);

-- name: older_lock
select pg_advisory_xact_lock($1::bigint);

-- name: step_patience
select set_config('lock_timeout', $1::text, true);

-- name: create_migration_table
create table {schema}.schema_migration (version int primary key, name text not null, applied_at timestamptz not null default now());

-- name: schema_level
select m.version, coalesce((to_jsonb(m) ->> 'oldest')::int, 0) from {schema}.schema_migration m order by m.version desc limit 1;

-- name: record_migration
insert into {schema}.schema_migration (version, name) values ($1, $2);

-- name: record_oldest
update {schema}.schema_migration set oldest = $2::int where version = $1::int;

-- Who owns the log makes and drops its partitions, beside it.
-- name: missing_rights
select current_user::text, pg_get_userbyid(log.relowner)::text, array(
  select needed || ' on table ' || name
  from unnest(array['installation', 'lane', 'class', 'exec', 'queue', 'lease', 'timer', 'idem', 'doc', 'counter', 'inbox', 'log', 'projection', 'search', 'program', 'mention', 'log_index']) name,
       unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) needed
  where not has_table_privilege(to_regclass('{schema}.' || name), needed)
  union all select 'USAGE on sequence log_seq' where not has_sequence_privilege('{schema}.log_seq', 'USAGE')
  union all select 'CREATE on schema ' || log.relnamespace::regnamespace where not has_schema_privilege(log.relnamespace, 'CREATE')
  union all select 'to own table log' where not pg_has_role(log.relowner, 'USAGE'))
from pg_class log where log.oid = '{schema}.log'::regclass;
