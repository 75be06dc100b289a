-- Lanes, classes and rules.

-- name: dictionary version
select dictionary from ff_installation;

-- name: raise dictionary
update ff_installation set dictionary = dictionary + 1;

-- name: load lanes
select id, name, settings, revision, since, counting, registered_by from ff_lane order by id;

-- name: lane settings
select settings from ff_lane where name = ?;

-- name: load classes
select id, namespace, lane, kind, capabilities, fairness_key, needs, retired_at from ff_class order by id;

-- name: load class
select id, namespace, lane, kind, capabilities, fairness_key, needs from ff_class where id = ?;

-- name: load rules
select kind, key, body, data, expires_at from ff_doc where owner = '' and kind >= ? order by kind, key;

-- name: find lane
select id, name, settings, revision, since, counting, registered_by from ff_lane where name = ?;

-- name: find class
select id from ff_class where namespace = ? and lane = ? and kind = ? and capabilities = ? and fairness_key = ? and needs = ?;

-- name: insert lane
insert into ff_lane (name, settings, revision, since, counting, registered_by) values (?, ?, ?, ?, ?, ?)
on conflict (name) do nothing;

-- name: update lane
update ff_lane set settings = ?, revision = ?, since = ?, counting = ?, registered_by = ? where id = ?;

-- name: insert class
insert into ff_class (namespace, lane, kind, capabilities, fairness_key, needs) values (?, ?, ?, ?, ?, ?)
on conflict (namespace, lane, kind, capabilities, fairness_key, needs) do nothing;

-- name: revive class
update ff_class set retired_at = 0
where namespace = ? and lane = ? and kind = ? and capabilities = ? and fairness_key = ? and needs = ? and retired_at > 0;

-- name: retire class
update ff_class set retired_at = ? where id = ? and retired_at = 0;

-- name: drop class
delete from ff_class where id = ? and retired_at = ? and retired_at > 0;

-- name: unused classes
select id from ff_class where id not in (select class from ff_exec) order by id;
