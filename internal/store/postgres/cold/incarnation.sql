-- What names the incarnation of the database. It stands in the statements for {incarnation}.

-- name: incarnation
left(pg_walfile_name(pg_current_wal_lsn()), 8) || '.' || to_hex((extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint)

-- name: incarnation_without_timeline
'.' || to_hex((extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint)
