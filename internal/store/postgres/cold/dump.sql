-- Statements around a dump and its restoration.

-- name: server_major
select current_setting('server_version_num')::int / 10000;

-- name: export_snapshot
select pg_export_snapshot();

-- The rows of every table of a schema, by quoted name. Partitioned tables have none of their own.
-- name: rows_by_table
select format('%I.%I', n.nspname, c.relname),
       (xpath('/row/rows/text()', query_to_xml(format('select count(*) as rows from %I.%I', n.nspname, c.relname), false, true, '')))[1]::text::bigint
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind = 'r';

-- name: relations_of_schema
select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1;

-- Sessions of clients; those of the server itself have no user.
-- name: other_sessions
select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and usesysid is not null;

-- The next process that opens the store finds a copy, and gives it and its log new names.
-- name: mark_copy
update {schema}.installation set database = 0;
