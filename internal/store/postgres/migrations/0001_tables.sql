-- Moments are milliseconds since the Unix epoch, 0 when absent. An absent uuid is all zeros. Enumerations are the numbers of
-- package core. Hot tables have no index but their key and no foreign keys: each would cost a write or a lock a row. Values are
-- guarded by domains where one column will do: a check of the table is read anew by every statement that writes to it.

-- status * 1000 + reason * 10 + next, by the tables of L13; 0: the id is taken by a submission in the inbox, and nothing else is known
create domain {schema}.stage as smallint check (value = 0 or value / 10 in (
    101, 202, 203, 204, 305, 306, 307, 308, 309, 401, 500, 607, 608, 627, 628, 629, 630, 631, 710,
    811, 812, 813, 814, 815, 816, 817, 818, 819, 820, 918, 920, 921, 922, 923, 924, 1018, 1025, 1126)
  and value % 10 <= 5 and (value % 10 = 0) = (value / 1000 = 5 or value >= 7000));
create domain {schema}.lease_end as smallint check (value between 0 and 13);
create domain {schema}.attempt_state as smallint check (value between 0 and 6);
create domain {schema}.key_space as smallint check (value in (1, 2));
create domain {schema}.partition_number as smallint check (value between 0 and 255);

create table {schema}.installation (
  one        bool primary key default true check (one),
  id         uuid not null,
  log_id     uuid not null,
  database   oid not null,    -- where all this belongs: elsewhere it is a copy
  dictionary bigint not null, -- version of lane and class
  log_floor  bigint not null  -- log rows up to here are gone
);
insert into {schema}.installation (id, log_id, database, dictionary, log_floor)
select gen_random_uuid(), gen_random_uuid(), oid, 1, 0 from pg_database where datname = current_database();

create table {schema}.lane (
  lane_id       int generated always as identity primary key,
  name          text collate "C" not null unique,
  settings      jsonb not null check (settings ->> 'state' in ('active', 'paused', 'draining', 'disabled')),
  revision      bigint not null,
  since         bigint not null,
  counting      bool not null,
  registered_by text not null
);

create table {schema}.class (
  class_id     int generated always as identity primary key,
  digest       bytea not null unique, -- of the columns below
  namespace    text collate "C" not null,
  lane         text collate "C" not null,
  kind         text collate "C" not null,
  capabilities text[] collate "C" not null,
  fairness_key text collate "C" not null,
  retired_at   bigint not null default 0 -- since when no new execution may have it
);

-- What never changes stands first, so that an update on the same page logs only what follows. Half of each page is kept free
-- for new versions of its rows. Statements look at few columns, and each column costs with every row written: the rest of the
-- record is in origin (what never changes) and state.
create table {schema}.exec (
  id        uuid primary key,
  class_id  int not null,
  n         {schema}.partition_number not null,
  origin    bytea not null,
  input     bytea not null,
  stage     {schema}.stage not null,
  order_key bigint not null,
  version   int not null default 1, -- counts the writes
  state     bytea not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, toast_tuple_target = 256);
alter table {schema}.exec alter origin set storage external, alter input set storage external, alter state set storage external;

-- ready rows under block 0, those blocked by admission under the number of the key they wait for
create table {schema}.queue (
  class_id  int not null,
  block     int not null,
  order_key bigint not null,
  id        uuid not null,
  primary key (class_id, block, order_key, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_threshold = 1000000, vacuum_truncate = off);

-- the lease history, one row appended when a lease ends
create table {schema}.lease (
  id          uuid not null,
  epoch       bigint not null,
  lease_id    uuid not null,
  ended_at    bigint not null,
  n           smallint not null,
  ended_by    {schema}.lease_end not null,
  patch_state {schema}.attempt_state not null default 0,
  body        bytea not null,
  patch_body  bytea,
  result      bytea,
  primary key (id, epoch)
) with (toast_tuple_target = 256);
alter table {schema}.lease alter body set storage external, alter patch_body set storage external, alter result set storage external;

-- due is `at`, or, when somebody handles the timer, the moment at which others may
create table {schema}.timer (
  seq   bigint generated always as identity primary key,
  due   bigint not null,
  at    bigint not null,
  kind  smallint not null,
  tries int not null default 0,
  ids   uuid[] not null,
  texts bytea[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_threshold = 1000000, vacuum_truncate = off);
alter table {schema}.timer alter ids set storage external, alter texts set storage external; -- compressing ids costs more than it saves
create index timer_due on {schema}.timer (due, seq);

create table {schema}.idem (
  space       {schema}.key_space not null,
  namespace   text collate "C" not null,
  key         text collate "C" not null,
  fingerprint bytea not null,
  id          uuid not null,
  n           smallint not null,
  expires_at  bigint not null,
  primary key (key, namespace, space)
);

create table {schema}.doc (
  owner      text collate "C" not null,
  kind       smallint not null,
  key        bytea not null,
  body       bytea,
  data       bytea,
  expires_at bigint not null,
  primary key (owner, kind, key)
) with (fillfactor = 80);
alter table {schema}.doc alter data set storage external;

create table {schema}.counter (
  key bytea primary key,
  n   bigint not null
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create table {schema}.inbox (
  id   uuid primary key,
  n    smallint not null,
  body bytea not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- one row a commit; an empty body is a number whose transaction was rolled back
create sequence {schema}.log_seq as bigint cache 1;
create table {schema}.log (
  seq  bigint not null,
  at   bigint not null,
  body bytea not null,
  primary key (seq)
) partition by range (seq);
alter table {schema}.log alter body set storage external;

create table {schema}.projection (
  one      bool primary key default true check (one),
  position bigint not null
);
insert into {schema}.projection (position) values (0);

-- filled behind the log; terms holds what is looked up exactly: tags, words, flow, parent, instance, creator, key
create table {schema}.search (
  id           uuid primary key,
  created_at   bigint not null,
  completed_at bigint not null,
  updated_at   bigint not null,
  class_id     int not null,
  status       smallint not null,
  reason       smallint not null,
  next         smallint not null,
  priority     smallint not null,
  terms        text[] collate "C" not null
) with (fillfactor = 80);
create index search_created on {schema}.search (created_at, id);
create index search_completed on {schema}.search (completed_at, id) where completed_at > 0;
create index search_status on {schema}.search (status, created_at, id);
create index search_terms on {schema}.search using gin (terms);
