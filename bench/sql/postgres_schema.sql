-- The plain layout: one row of work, written three times. An index holds what is ready, in the order of claiming.
create table job (
  id            uuid primary key,
  lane          int not null,
  state         smallint not null default 0,
  priority      smallint not null default 0,
  order_key     bigint not null,
  created_at    bigint not null,
  ended_at      bigint,
  lease_epoch   int not null default 0,
  lease_id      uuid,
  lease_expires bigint,
  body          bytea not null
) with (fillfactor = 70);

create index job_ready on job (lane, order_key, id) where state = 0;
