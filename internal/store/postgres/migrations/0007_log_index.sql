-- needs: 6
-- Which commits of the log name an execution or a flow; filled behind the log. Rows of one era (the upper bits of their positions) are dropped
-- with the log of that era. The step takes nothing away; it needs what the one before needs, so that it waits with it.
create table {schema}.mention (
  era     int not null,
  subject uuid not null,
  first   bigint not null,   -- the first of seqs
  seqs    bigint[] not null, -- ascending
  primary key (era, subject, first)
);

-- Where the index ends.
create table {schema}.log_index (
  one      bool primary key default true check (one),
  position bigint not null
);
insert into {schema}.log_index (position) values (0);
