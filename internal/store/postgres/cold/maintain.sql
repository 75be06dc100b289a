-- name: newest_partition
select coalesce(max(substring(c.relname from 'log_p(\d+)$')::bigint), -1)
from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = '{schema}.log'::regclass;

-- name: partitions
select c.relname::text, substring(c.relname from 'log_p(\d+)$')::bigint, i.inhdetachpending
from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = '{schema}.log'::regclass order by 2;

-- Attaching takes a weak lock on the log, creating in place a strong one. A commit that fits into a page stays in its row.
-- name: create_partition
create table if not exists {schema}.{partition} (like {schema}.log including all) with (toast_tuple_target = 8160);

-- name: attach_partition
alter table {schema}.log attach partition {schema}.{partition} for values from ({from}) to ({to});

-- name: detach_partition
alter table {schema}.log detach partition {schema}.{partition} concurrently;

-- name: finish_detaching
alter table {schema}.log detach partition {schema}.{partition} finalize;

-- name: drop_partition
drop table if exists {schema}.{partition};

-- name: first_kept
select seq from {schema}.log where seq > $1 and at >= $2 order by seq limit 1;

-- name: raise_floor
update {schema}.installation set log_floor = greatest(log_floor, $1) returning log_floor;

-- name: trim_log
delete from {schema}.log where seq <= $1;

-- name: trim_mentions
delete from {schema}.mention where ctid = any (array (select ctid from {schema}.mention where era < $1::int limit 10000));

-- name: bloated
select relname::text from pg_stat_user_tables
where relid in (select oid from pg_class where relnamespace = '{schema}'::regnamespace) and relname in ('queue', 'timer', 'counter', 'inbox') and n_dead_tup > 10000 and n_dead_tup > 2 * n_live_tup;

-- name: vacuum
vacuum {schema}.{table};

-- name: log_position
select last_value from {schema}.log_seq;
