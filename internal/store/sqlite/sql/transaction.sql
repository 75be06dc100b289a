-- Transactions, settings of a connection, and the one row that describes the installation.

-- name: begin immediate
begin immediate;

-- name: begin
begin;

-- Changes nothing. It makes a transaction that another program began a writing one.

-- name: take turn
update ff_installation set schema = schema where false;

-- name: commit
commit;

-- name: rollback
rollback;

-- name: take over log
pragma wal_checkpoint(truncate);

-- name: journal mode
pragma journal_mode;

-- name: sqlite version
select sqlite_version();

-- name: installed
select count(*) from sqlite_schema where type = 'table' and name = 'ff_installation';

-- name: insert installation
insert into ff_installation (one, id, log_id, schema, dictionary, projected) values (1, ?, ?, 0, 1, 0);

-- name: read installation
select id, log_id, schema from ff_installation;

-- name: set schema
update ff_installation set schema = ?;

-- name: set log id
update ff_installation set log_id = ?;

-- name: copy into
vacuum into ?;

-- What is told to those who look after the file.

-- name: file pages
select page_count, freelist_count, page_size from pragma_page_count, pragma_freelist_count, pragma_page_size;

-- name: overdue timers
select count(*), coalesce(min(at), 0) from (select at from ff_timer where at <= ? order by at limit ?);

-- name: look for damage
pragma integrity_check(20);

-- The columns are those of "load executions with inputs", "load lease" and "load owned docs".

-- name: scrub executions
select e.id, e.n, e.class, e.status, e.reason, e.next, e.order_key, e.state, e.origin, e.version,
  coalesce(e.input, (select i.data from ff_input as i where i.id = e.id))
from ff_exec as e where e.status > 0;

-- name: scrub leases
select 0, epoch, lease_id, ended_at, end, body, patch_state, patch_body, result is not null, result, id from ff_lease;

-- name: scrub docs
select owner, kind, key, body, data, expires_at from ff_doc;

-- name: scrub log
select seq, at, body from ff_log;
