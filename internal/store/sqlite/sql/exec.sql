-- Executions, their inputs and their lease history.

-- name: insert execution
insert into ff_exec (id, n, class, version, status, reason, next, order_key, state, origin, input) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- A version is the count of writes in the upper half and the writer's random bits in the lower one. Rows of older programs have a count
-- of 0.

-- It is negative while the row carries outcomes of a user's own transaction, which ends with the next write.

-- name: update execution
update ff_exec set version = ((((version & 0x7fffffffffffffff) >> 32) + 1) << 32) | ?, status = ?, reason = ?, next = ?, order_key = ?, state = ? where id = ?;

-- name: update execution as remembered
update ff_exec set version = ((((version & 0x7fffffffffffffff) >> 32) + 1) << 32) | ?, status = ?, reason = ?, next = ?, order_key = ?, state = ? where id = ? and version = ?;

-- name: insert input
insert into ff_input (id, data) values (?, ?);

-- name: load executions
select e.id, e.n, e.class, e.status, e.reason, e.next, e.order_key, e.state, e.origin, e.version
from json_each(?) as wanted cross join ff_exec as e on e.id = unhex(wanted.value);

-- name: load executions with inputs
select e.id, e.n, e.class, e.status, e.reason, e.next, e.order_key, e.state, e.origin, e.version,
  coalesce(e.input, (select i.data from ff_input as i where i.id = e.id))
from json_each(?) as wanted cross join ff_exec as e on e.id = unhex(wanted.value);

-- name: insert lease
insert into ff_lease (id, epoch, lease_id, ended_at, end, body, result) values (?, ?, ?, ?, ?, ?, ?);

-- name: replace lease
replace into ff_lease (id, epoch, lease_id, ended_at, end, body, result) values (?, ?, ?, ?, ?, ?, ?);

-- name: drop lease
delete from ff_lease where id = ? and epoch = ?;

-- name: patch lease
update ff_lease set patch_state = ?, patch_body = ? where id = ? and epoch = ?;

-- The last column is null unless the bytes of results are asked for.

-- name: load lease
select e.n, l.epoch, l.lease_id, l.ended_at, l.end, l.body, l.patch_state, l.patch_body, l.result is not null, iif(?, l.result, null)
from ff_lease as l cross join ff_exec as e on e.id = l.id
where l.id = ? and l.epoch = ?;

-- name: load leases above
select e.n, l.epoch, l.lease_id, l.ended_at, l.end, l.body, l.patch_state, l.patch_body, l.result is not null, iif(?, l.result, null)
from ff_lease as l cross join ff_exec as e on e.id = l.id
where l.id = ? and l.epoch > ? order by l.epoch limit ?;

-- Of the blocks in which the class has rows every one is tried: the blocks are few, the rows may be many.

-- name: execution is there
select 1 from ff_exec where id = ? and status > 0;

-- name: remove from queues
with recursive
  x (class, order_key) as (select class, order_key from ff_exec where id = ?1),
  used (block) as (
    select min(q.block) from ff_queue as q where q.class = (select class from x)
    union all
    select (select min(q.block) from ff_queue as q where q.class = (select class from x) and q.block > used.block)
    from used where used.block is not null)
delete from ff_queue
where class = (select class from x) and block in (select block from used where block is not null)
  and order_key = (select order_key from x) and id = ?1;

-- name: take id
insert into ff_exec (id, n, class, version, status, reason, next, order_key, state, origin, input) values (?, ?, 0, 0, 0, 0, 0, 0, x'', x'', x'');

-- name: free id
delete from ff_exec where id = ? and status = 0;

-- name: remove execution
delete from ff_exec where id = ?;

-- name: remove input
delete from ff_input where id = ?;

-- name: remove leases
delete from ff_lease where id = ?;

-- name: remove docs
delete from ff_doc where owner = ?;

-- name: strip docs
delete from ff_doc where owner = ? and kind not in (select value from json_each(?));
