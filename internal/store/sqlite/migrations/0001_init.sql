-- The first schema. Names begin with ff_ because the file may hold tables of the user's own. Moments are milliseconds, 0 when
-- absent; ids are the 16 raw bytes of a UUID. Numbers of statuses, reasons and so on are those of package core.

create table ff_installation (
  one integer primary key check (one = 1),
  id blob not null check (length(id) = 16),
  log_id blob not null check (length(log_id) = 16),
  schema integer not null,
  dictionary integer not null,
  projected integer not null
) strict;

create table ff_lane (
  id integer primary key autoincrement,
  name text not null unique,
  settings text not null check (settings ->> 'state' in ('active', 'paused', 'draining', 'disabled')),
  revision integer not null,
  since integer not null,
  counting integer not null check (counting in (0, 1)),
  registered_by text not null
) strict;

create table ff_class (
  id integer primary key autoincrement,
  namespace text not null,
  lane text not null,
  kind text not null,
  capabilities text not null,
  fairness_key text not null,
  retired_at integer not null default 0, -- since when no new execution may have it
  unique (namespace, lane, kind, capabilities, fairness_key)
) strict;

-- Of an execution only what a statement or a constraint looks at is a column: each further one costs more than the record.
-- Status 0: the id is taken by a submission in the inbox, and nothing else is known.
create table ff_exec (
  id blob primary key check (length(id) = 16),
  n integer not null check (n between 0 and 255),
  class integer not null,
  version integer not null,
  status integer not null check (status between 0 and 11),
  reason integer not null,
  next integer not null check (next between 0 and 5),
  order_key integer not null,
  state blob not null,
  origin blob not null,
  input blob,
  -- L13: the reasons of each status.
  constraint reason_of_status check (
    case status
      when 0 then reason = 0
      when 1 then reason = 1
      when 2 then reason between 2 and 4
      when 3 then reason between 5 and 9
      when 4 then reason = 1
      when 5 then reason = 0
      when 6 then reason between 27 and 31 or reason between 7 and 8
      when 7 then reason = 10
      when 8 then reason between 11 and 20
      when 9 then reason between 21 and 24 or reason = 18 or reason = 20
      when 10 then reason = 25 or reason = 18
      when 11 then reason = 26
    end),
  -- L13: what the next acquisition does is open exactly while x is neither running nor terminal.
  constraint next_of_status check ((next = 0) = (status in (0, 5) or status >= 7))
) strict, without rowid;

-- Inputs that are too long to be carried along with every change of their execution.
create table ff_input (
  id blob primary key,
  data blob not null
) strict;

create table ff_lease (
  id blob not null,
  epoch integer not null,
  lease_id blob not null,
  ended_at integer not null,
  end integer not null check (end between 1 and 13),
  body blob not null,
  patch_state integer not null default 0 check (patch_state between 0 and 6),
  patch_body blob,
  result blob,
  primary key (id, epoch)
) strict, without rowid;

create table ff_queue (
  class integer not null,
  block integer not null,
  order_key integer not null,
  id blob not null,
  primary key (class, block, order_key, id)
) strict, without rowid;

create table ff_timer (
  seq integer primary key autoincrement,
  at integer not null,
  kind integer not null check (kind between 0 and 255),
  ids blob,
  texts text,
  tries integer not null default 0
) strict;
create index ff_timer_by_at on ff_timer (at, seq);

create table ff_idem (
  space integer not null check (space in (1, 2)),
  namespace text not null,
  key text not null,
  fingerprint blob not null,
  id blob not null,
  n integer not null,
  expires_at integer not null,
  primary key (space, namespace, key)
) strict, without rowid;

create table ff_doc (
  owner text not null,
  kind integer not null check (kind between 0 and 255),
  key text not null,
  body blob,
  data blob,
  expires_at integer not null,
  primary key (owner, kind, key)
) strict, without rowid;

create table ff_counter (
  key text primary key,
  n integer not null
) strict, without rowid;

create table ff_inbox (
  seq integer primary key autoincrement,
  id blob not null unique,
  n integer not null,
  body blob not null
) strict;

-- One row a commit. Numbers are never used twice, so the end of the log is known even when its rows are dropped.
create table ff_log (
  seq integer primary key autoincrement,
  at integer not null,
  body blob not null
) strict;

-- Filled behind the log, never by the transaction of a change.
create table ff_search (
  id blob primary key,
  namespace text not null,
  lane text not null,
  kind text not null,
  creator text not null,
  idempotency_key text,
  flow blob,
  parent blob,
  created integer not null,
  status integer not null,
  reason integer not null,
  next integer not null,
  priority integer not null,
  instance text,
  completed integer not null,
  updated integer not null,
  words text not null
) strict, without rowid;
create index ff_search_by_created on ff_search (created);
create index ff_search_by_completed on ff_search (completed) where completed > 0;
create index ff_search_by_status on ff_search (status, created);
create index ff_search_by_namespace on ff_search (namespace, created);
create index ff_search_by_lane on ff_search (lane, created);
create index ff_search_by_kind on ff_search (kind, created);
create index ff_search_by_key on ff_search (idempotency_key, created) where idempotency_key is not null;
create index ff_search_by_flow on ff_search (flow, created) where flow is not null;
create index ff_search_by_parent on ff_search (parent, created) where parent is not null;
create index ff_search_by_instance on ff_search (instance, created) where instance is not null;

create table ff_search_tag (
  key text not null,
  value text not null,
  id blob not null,
  primary key (key, value, id)
) strict, without rowid;
create index ff_search_tag_by_id on ff_search_tag (id);
