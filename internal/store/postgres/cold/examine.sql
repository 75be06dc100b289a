-- What is told of the database to those who look after it. An ordinary role may read all of it; of the sessions of other roles
-- it sees that they are there.

-- name: examine_server
select current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int,
       (select coalesce(sum(numbackends), 0)::int from pg_stat_database), pg_backend_pid(),
       current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       current_setting('autovacuum')::bool and current_setting('track_counts')::bool, pg_database_size(current_database());

-- name: examine_transactions
select pid::bigint, coalesce(application_name, ''), coalesce(state, ''), (extract(epoch from clock_timestamp() - xact_start) * 1000)::bigint
from pg_stat_activity
where datname = current_database() and backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()
order by xact_start limit 5;

-- name: examine_tables
select s.relname::text, s.n_live_tup, s.n_dead_tup, coalesce(c.reloptions @> array['autovacuum_enabled=false'] or c.reloptions @> array['autovacuum_enabled=off'], false)
from pg_stat_user_tables s join pg_class c on c.oid = s.relid
where c.relnamespace = '{schema}'::regnamespace order by s.n_dead_tup desc, s.relname;

-- name: examine_timers
select count(*)::int, coalesce(min(due), 0) from (select due from {schema}.timer where due <= $1 order by due limit $2) overdue;
