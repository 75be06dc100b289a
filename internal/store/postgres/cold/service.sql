-- Services whose storage lies below the server: what it shows as fsync and full_page_writes says nothing of them. Settings count only
-- where the service's own library has defined them.
-- name: service
select to_regprocedure('pg_catalog.aurora_version()') is not null,
       coalesce(bool_or(name like 'alloydb.%'), false), coalesce(bool_or(name = 'neon.tenant_id'), false)
from pg_settings;

-- Standbys, and how many of them a commit waits for; -1 where this role is not told. Readers of logical slots and copies that are being made
-- are none.
-- name: standbys
select count(*)::int, case when bool_or(sync_state is null) then -1 else count(*) filter (where sync_state in ('sync', 'quorum')) end::int,
       current_setting('synchronous_standby_names'), current_setting('synchronous_commit')
from pg_stat_replication
where coalesce(state, '') <> 'backup'
  and pid not in (select active_pid from pg_replication_slots where slot_type = 'logical' and active_pid is not null);
