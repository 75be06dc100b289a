-- Lanes and classes.

-- name: dictionary version
select dictionary from ff_installation;

-- name: raise dictionary
update ff_installation set dictionary = dictionary + 1;

-- name: load lanes
select id, name, settings, revision, since, counting, registered_by from ff_lane order by id;

-- name: load classes
select id, namespace, lane, kind, capabilities, fairness_key from ff_class order by id;

-- name: load class
select id, namespace, lane, kind, capabilities, fairness_key from ff_class where id = ?;

-- name: insert lane
insert into ff_lane (name, settings, revision, since, counting, registered_by) values (?, ?, ?, ?, ?, ?)
on conflict (name) do nothing;

-- name: update lane
update ff_lane set settings = ?, revision = ?, since = ?, counting = ?, registered_by = ? where id = ?;

-- name: insert class
insert into ff_class (namespace, lane, kind, capabilities, fairness_key) values (?, ?, ?, ?, ?)
on conflict (namespace, lane, kind, capabilities, fairness_key) do nothing;

-- name: drop class
delete from ff_class where id = ?;
