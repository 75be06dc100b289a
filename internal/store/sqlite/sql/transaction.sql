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
