-- The plain layout: one row of work, written three times. An index holds what is ready, in the order of claiming.
create table job (
  id            blob primary key,
  lane          integer not null,
  state         integer not null default 0,
  priority      integer not null default 0,
  order_key     integer not null,
  created_at    integer not null,
  ended_at      integer,
  lease_epoch   integer not null default 0,
  lease_id      blob,
  lease_expires integer,
  body          blob not null
) strict, without rowid;

create index job_ready on job (lane, order_key, id) where state = 0;
