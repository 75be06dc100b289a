-- The schema that the tables belong in. Null: the store was made before there was a choice, and its tables are moved while no program
-- uses them.
alter table {schema}.installation add column home text collate "C";

-- The oldest step that a program must know to run on a store that has this step.
alter table {schema}.schema_migration add column oldest int;

-- What has the store open. A step that takes away what older programs need waits for them to end.
create table {schema}.program (
  id         text collate "C" primary key,
  version    text not null,
  known      int not null,    -- the last step that it knows
  started_at bigint not null,
  seen_at    bigint not null  -- renewed while it runs
);

alter function {schema}.submit_to_inbox set search_path = {schema}, pg_temp;
