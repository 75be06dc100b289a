-- Search rows, and the pieces of which a search is put together: "find" or a "count", any number of "where", one order, one end.

-- name: move projection
update ff_installation set projected = ? where projected = ?;

-- name: put search
insert into ff_search (id, class, namespace, lane, kind, creator, idempotency_key, flow, parent, created, status, reason, next, priority,
  instance, completed, updated, words)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id) do update set status = excluded.status, reason = excluded.reason, next = excluded.next, priority = excluded.priority,
  instance = excluded.instance, completed = excluded.completed, updated = excluded.updated, words = excluded.words;

-- name: put search tag
insert into ff_search_tag (key, value, id) values (?, ?, ?);

-- name: remove search
delete from ff_search where id = ?;

-- name: remove search tags
delete from ff_search_tag where id = ?;

-- name: find
select s.id, s.created, s.completed from ff_search as s where true

-- name: count
select count(*) from (select 1 from ff_search as s where true

-- name: count end
limit ?)

-- name: count by state
select status, reason, next, '', count(*) from (select s.status, s.reason, s.next from ff_search as s where true

-- name: count by state end
limit ?) group by status, reason, next

-- name: count by lane
select 0, 0, 0, value, count(*) from (select s.lane as value from ff_search as s where true

-- name: count by lane status
select status, 0, 0, value, count(*) from (select s.status, s.lane as value from ff_search as s where true

-- name: count by lane status end
limit ?) group by value, status

-- name: count by kind
select 0, 0, 0, value, count(*) from (select s.kind as value from ff_search as s where true

-- name: count by instance
select 0, 0, 0, value, count(*) from (select s.instance as value from ff_search as s where true

-- name: count by tag
select 0, 0, 0, value, count(*) from (select t.value from ff_search as s join ff_search_tag as t on t.id = s.id where t.key = ?

-- name: count by value end
limit ?) group by value

-- name: find end
limit ?

-- name: find first of lanes
select f.id, f.created, f.completed, f.lane from (
  select g.*, row_number() over (partition by g.lane order by g.created, g.id) as place from (
    select s.id, s.created, s.completed, s.lane from ff_search as s where true

-- name: find first of lanes end
limit ?) as g) as f where f.place <= ? order by f.created, f.id

-- name: where nothing
and false

-- name: where status
and s.status in

-- name: where reason
and s.reason in

-- name: where next
and s.next in

-- name: where lane
and s.lane in

-- name: where kind
and s.kind in

-- name: where namespace
and s.namespace in

-- name: where class
and s.class in (select value from json_each(?))

-- name: where instance
and s.instance in

-- name: where creator
and s.creator in

-- name: where key
and s.idempotency_key in

-- name: where tag
and exists (select 1 from ff_search_tag as t where t.key = ? and t.id = s.id)

-- name: where tag value
and exists (select 1 from ff_search_tag as t where t.key = ? and t.value = ? and t.id = s.id)

-- name: where created from
and s.created >= ?

-- name: where created to
and s.created < ?

-- name: where completed
and s.completed > 0

-- name: where completed from
and s.completed >= ?

-- name: where completed to
and s.completed < ?

-- name: where updated from
and s.updated >= ?

-- name: where updated later
and (s.updated >= ? or s.status in (select value from json_each(?)))

-- name: where updated to
and s.updated < ?

-- name: where flow
and s.flow in

-- name: where parent
and s.parent in

-- name: where priority from
and s.priority >= ?

-- name: where priority to
and s.priority <= ?

-- name: where any
and (false

-- name: or id
or s.id between ? and ?

-- name: or key
or s.idempotency_key = ?

-- name: or words
or (true

-- name: and word
and instr(s.words, ?) > 0

-- name: end words
)

-- name: end any
)

-- name: after created desc
and (s.created, s.id) < (?, ?)

-- name: after created asc
and (s.created, s.id) > (?, ?)

-- name: after completed desc
and (s.completed, s.id) < (?, ?)

-- name: after id asc
and s.id > ?

-- name: order created desc
order by s.created desc, s.id desc

-- name: order created asc
order by s.created, s.id

-- name: order completed desc
order by s.completed desc, s.id desc

-- name: order id asc
order by s.id
