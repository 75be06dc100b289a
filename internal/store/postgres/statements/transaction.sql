-- name: begin
begin;

-- name: begin_snapshot
begin isolation level repeatable read read only;

-- name: commit
commit;

-- name: rollback
rollback;

-- Plans are made once a connection, perhaps on an empty table, and used for ever: only those that look rows up one by one in an
-- index stay good whatever the tables grow to. Discouraged plans look expensive, and what looks expensive would be compiled.
-- name: settings
select set_config('lock_timeout', $1::text, true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('jit', 'off', true);

-- name: clock
select (extract(epoch from clock_timestamp()) * 1000)::bigint, dictionary from installation;

-- Fails (division by zero) when the dictionary has another version.
-- name: check_dictionary
select 1 / (dictionary = $1::bigint)::int from installation;

-- name: raise_dictionary
update installation set dictionary = dictionary + 1;
