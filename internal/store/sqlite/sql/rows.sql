-- Queues, timers, keys, docs, counters, inbox and log.

-- name: pick
select order_key, id from ff_queue where class = ? and block = ? and order_key >= ? order by order_key, id limit ?;

-- From number to number: the numbers are few, the rows under each may be many.

-- name: load blocks
with recursive used (class, block) as (
  select wanted.value, (select q.block from ff_queue as q where q.class = wanted.value and q.block > 0 order by q.block limit 1)
  from json_each(?) as wanted
  union all
  select used.class, (select q.block from ff_queue as q where q.class = used.class and q.block > used.block order by q.block limit 1)
  from used where used.block is not null)
select class, block from used where block is not null;

-- name: enqueue
insert into ff_queue (class, block, order_key, id) values (?, ?, ?, ?);

-- name: dequeue
delete from ff_queue where class = ? and block = ? and order_key = ? and id = ?;

-- name: due timers
select seq, at, kind, ids, texts, tries from ff_timer
where at <= ? and kind not in (select value from json_each(?)) order by at, seq limit ?;

-- name: timers ahead
select seq, at, kind, ids, texts, tries from ff_timer where at > ? and at <= ? and seq > ? order by seq limit ?;

-- name: any due timer
select 1 from ff_timer where at <= ? and kind not in (select value from json_each(?)) limit 1;

-- name: hide timer
update ff_timer set at = ?, tries = tries + 1 where seq = ?;

-- name: keep timer hidden
update ff_timer set at = ?1 where seq = ?2 and at < ?1;

-- name: add timer
insert into ff_timer (at, kind, ids, texts) values (?, ?, ?, ?);

-- name: drop timer
delete from ff_timer where seq = ?;

-- name: load key
select fingerprint, id, n, expires_at from ff_idem where space = ? and namespace = ? and key = ?;

-- name: insert key
insert into ff_idem (space, namespace, key, fingerprint, id, n, expires_at) values (?, ?, ?, ?, ?, ?, ?);

-- name: replace key
replace into ff_idem (space, namespace, key, fingerprint, id, n, expires_at) values (?, ?, ?, ?, ?, ?, ?);

-- name: drop expired key
delete from ff_idem where space = ? and namespace = ? and key = ? and expires_at <= ?;

-- name: load doc
select body, data, expires_at from ff_doc where owner = ? and kind = ? and key = ?;

-- An upper bound that is a blob is above every text.

-- name: scan docs
select key, body, data, expires_at from ff_doc
where owner = ? and kind = ? and key > ? and key >= ? and key < ? order by key limit ?;

-- Those of one owner and kind come one after the other, in order of the key: each is a walk through the index.

-- name: load owned docs
select d.owner, d.kind, d.key, d.body, d.data, d.expires_at
from json_each(?) as wanted cross join ff_doc as d on d.owner = wanted.value ->> 0 and d.kind = wanted.value ->> 1;

-- name: insert doc
insert into ff_doc (owner, kind, key, body, data, expires_at) values (?, ?, ?, ?, ?, ?);

-- name: put doc
replace into ff_doc (owner, kind, key, body, data, expires_at) values (?, ?, ?, ?, ?, ?);

-- name: drop doc
delete from ff_doc where owner = ? and kind = ? and key = ?;

-- name: load counter
select n from ff_counter where key = ?;

-- name: add to counter
insert into ff_counter (key, n) values (?, ?) on conflict (key) do update set n = n + excluded.n;

-- name: drop empty counter
delete from ff_counter where key = ? and n = 0;

-- name: load inbox
select id, n, body from ff_inbox where id > ? order by id limit ?;

-- name: insert inbox
insert into ff_inbox (id, n, body) values (?, ?, ?);

-- name: note in inbox
insert into ff_inbox (id, n, body) values (?, ?, x'') on conflict (id) do nothing;

-- name: mark execution
update ff_exec set version = ((version >> 32) << 32) | ? | (1 << 63) where id = ? and status > 0;

-- name: own execution
select e.n, e.class, e.version, e.status, e.reason, e.next, e.order_key, e.state, e.origin, c.namespace, c.lane, c.kind, c.fairness_key, c.needs
from ff_exec as e join ff_class as c on c.id = e.class where e.id = ? and e.status > 0;

-- name: own docs
select key, body, data, expires_at from ff_doc where owner = ? and kind = ? order by key;

-- name: drop inbox
delete from ff_inbox where id = ?;

-- name: find id
select n from ff_exec where id = ?1 union all select n from ff_inbox where id = ?1 limit 1;

-- name: submission of
select body from ff_inbox where id = ?;

-- name: append to log
insert into ff_log (at, body) values (?, ?);

-- name: read log
select seq, at, body from ff_log where seq > ? order by seq limit ?;

-- name: read commit
select seq, at, body from ff_log where seq = ?;

-- name: index end
select indexed, coalesce((select min(seq) from ff_log), indexed + 1) from ff_installation;

-- name: move index
update ff_installation set indexed = ? where indexed = ?;

-- name: put mention
insert into ff_mention (era, subject, first, seqs) values (?, ?, ?, ?);

-- The row that may hold the position itself, and those behind it.

-- name: mentions
select first, seqs from ff_mention where era = ?1 and subject = ?2
  and first >= coalesce((select max(first) from ff_mention where era = ?1 and subject = ?2 and first <= ?3), 0)
order by first limit ?4;

-- name: newest mentions
select first, seqs from ff_mention where era = ?1 and subject = ?2
  and first >= coalesce((select max(first) from ff_mention where era = ?1 and subject = ?2 and first <= ?3), 0)
order by first desc limit ?4;

-- name: drop mentions
delete from ff_mention where (era, subject, first) in (select era, subject, first from ff_mention where era < ? order by era, subject, first limit ?);

-- Only from the old end, so that what is left has no gap even if the clock went back.

-- name: first kept commit
select coalesce((select seq from ff_log where at >= ? order by seq limit 1), 9223372036854775807);

-- name: drop log
delete from ff_log where seq in (select seq from ff_log where seq < ? order by seq limit ?);

-- name: optimize
pragma optimize;

-- name: poll
select
  (select dictionary from ff_installation),
  (select min(at) from ff_timer),
  (select min(seq) from ff_log),
  (select seq from sqlite_sequence where name = 'ff_log'),
  (select projected from ff_installation),
  exists (select 1 from ff_inbox),
  (select group_concat(exists (
      select 1 from ff_queue as q
      where q.class = asked.value ->> 0 and q.block = asked.value ->> 1 and q.order_key < asked.value ->> 2),
    '' order by asked.key) from json_each(?) as asked);
