-- name: newest_partition
select coalesce(max(substring(c.relname from 'log_p(\d+)$')::bigint), -1)
from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'log'::regclass;

-- name: partitions
select c.relname::text, substring(c.relname from 'log_p(\d+)$')::bigint, i.inhdetachpending
from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'log'::regclass order by 2;

-- Attaching takes a weak lock on the log, creating in place a strong one. A commit that fits into a page stays in its row.
-- name: create_partition
create table if not exists {partition} (like log including all) with (toast_tuple_target = 8160);

-- name: attach_partition
alter table log attach partition {partition} for values from ({from}) to ({to});

-- name: detach_partition
alter table log detach partition {partition} concurrently;

-- name: finish_detaching
alter table log detach partition {partition} finalize;

-- name: drop_partition
drop table if exists {partition};

-- name: first_kept
select seq from log where seq > $1 and at >= $2 order by seq limit 1;

-- name: raise_floor
update installation set log_floor = greatest(log_floor, $1) returning log_floor;

-- name: trim_log
delete from log where seq <= $1;

-- name: bloated
select relname::text from pg_stat_user_tables
where schemaname = current_schema() and relname in ('queue', 'timer', 'counter', 'inbox') and n_dead_tup > 10000 and n_dead_tup > 2 * n_live_tup;

-- name: vacuum
vacuum {table};

-- name: log_position
select last_value from log_seq;
