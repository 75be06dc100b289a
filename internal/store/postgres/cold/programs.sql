-- name: enter_program
insert into {schema}.program (id, version, known, started_at, seen_at)
select $1::text, $2::text, $3::int, ms, ms from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) clock;

-- name: forget_programs
delete from {schema}.program where seen_at < (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint;

-- name: has_programs
select to_regclass('{schema}.program') is not null;

-- Programs that have the store open, but for one.
-- name: programs
select version, known, started_at, seen_at from {schema}.program
where id <> $1::text and seen_at >= (extract(epoch from clock_timestamp()) * 1000)::bigint - $2::bigint order by known, started_at, id;

-- Programs from before they were listed: by the session in which each hears of others' work, or, through a pooler, by what a session
-- did last.
-- name: older_programs
select count(*)::int from pg_stat_activity, {schema}.installation i
where datname = current_database() and pid <> pg_backend_pid() and (query = 'listen flowfabric_' || left(i.id::text, 8) or query ~ '\mfrom installation( i)?$');
