-- Which commits of the log name an execution or a flow; filled behind the log. Rows of one era (the upper bits of their positions) are dropped
-- with the log of that era.
create table ff_mention (
  era integer not null,
  subject blob not null,
  first integer not null, -- the first of seqs
  seqs blob not null,     -- ascending, as differences
  primary key (era, subject, first)
) strict, without rowid;

-- Where the index ends.
alter table ff_installation add column indexed integer not null default 0;
