-- What admission asks for on behalf of every execution of a class is part of what makes it one (S13), so that the class has a longer
-- name. A name cannot be changed in place: the table is made anew.
alter table ff_class rename to ff_class_before;

create table ff_class (
  id integer primary key autoincrement,
  namespace text not null,
  lane text not null,
  kind text not null,
  capabilities text not null,
  fairness_key text not null,
  needs text not null,
  retired_at integer not null default 0, -- since when no new execution may have it
  unique (namespace, lane, kind, capabilities, fairness_key, needs)
) strict;
insert into ff_class (id, namespace, lane, kind, capabilities, fairness_key, needs, retired_at)
select id, namespace, lane, kind, capabilities, fairness_key, '', retired_at from ff_class_before;

-- The numbers of classes that were dropped are not used again.
delete from sqlite_sequence where name = 'ff_class';
insert into sqlite_sequence (name, seq) select 'ff_class', seq from sqlite_sequence where name = 'ff_class_before';
drop table ff_class_before;

-- Executions are looked for by their class. It narrows a list by status, and is no way into the table by itself.
alter table ff_search add column class integer not null default 0;
update ff_search set class = coalesce((select e.class from ff_exec as e where e.id = ff_search.id), 0);
