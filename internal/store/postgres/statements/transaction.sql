-- name: begin
begin;

-- name: begin_snapshot
begin isolation level repeatable read read only;

-- name: commit
commit;

-- name: rollback
rollback;

-- Rows are tried one after the other in one transaction, each as if the others had not been (held.go).
-- name: before_trying
savepoint before_trying;

-- name: back_before_trying
rollback to savepoint before_trying;

-- Plans are made once a connection, perhaps while a table is empty, and used whatever it grows to. These settings, and the form
-- of the statements, leave no plan but one whose work depends on the rows asked for: tables that grow are read by an index with
-- a condition, either inside a lateral subquery that cannot be turned round or for all keys at once, joined by hashing. Plans
-- that are discouraged look expensive, and what looks expensive would be compiled: hence jit. $2: for this transaction only.
--
-- No statement runs longer than its caller waits ($3). A process that is frozen in a transaction, or whose host is, is no
-- reason for others to wait for its locks: the server ends its session ($4).
-- name: settings
select set_config('lock_timeout', $1::text, $2::bool), set_config('statement_timeout', $3::text, $2::bool),
       set_config('idle_in_transaction_session_timeout', $4::text, $2::bool), set_config('plan_cache_mode', 'force_generic_plan', $2::bool),
       set_config('enable_seqscan', 'off', $2::bool), set_config('enable_nestloop', 'off', $2::bool),
       set_config('enable_mergejoin', 'off', $2::bool), set_config('enable_bitmapscan', 'off', $2::bool),
       set_config('enable_memoize', 'off', $2::bool), set_config('jit', 'off', $2::bool),
       set_config('search_path', 'pg_catalog, pg_temp', $2::bool);

-- name: lock_wait
select set_config('lock_timeout', $1::text, true);

-- Back to the server's own settings, up to the end of the transaction.
-- name: free_planner
select set_config('plan_cache_mode', null, true), set_config('enable_seqscan', null, true), set_config('enable_nestloop', null, true),
       set_config('enable_mergejoin', null, true), set_config('enable_bitmapscan', null, true), set_config('enable_memoize', null, true),
       set_config('jit', null, true);

-- name: clock
select (extract(epoch from clock_timestamp()) * 1000)::bigint, dictionary, {incarnation} from {schema}.installation;

-- Fails (division by zero) when the dictionary has another version ($1; 0: any will do), or the database another incarnation ($2; '').
-- name: check_standing
select 1 / (($1::bigint = 0 or dictionary = $1::bigint) and ($2::text = '' or $2::text = {incarnation}))::int from {schema}.installation;

-- name: name_log
update {schema}.installation set log_id = $1::uuid;

-- name: raise_dictionary
update {schema}.installation set dictionary = dictionary + 1;
