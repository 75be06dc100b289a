-- name: installation_exists
select to_regclass('installation') is not null and to_regclass('inbox') is not null;

-- name: installation
select id::text from installation;

-- name: submit
select outcome, found_id::text, found_n, found_fingerprint, found_expires_at, found_body
from submit_to_inbox($1::smallint, $2::text, $3::text, $4::bytea, $5::bigint, $6::uuid, $7::smallint, $8::bytea, $9::bigint);

-- name: glance
select (extract(epoch from clock_timestamp()) * 1000)::bigint, (select l.settings::text from lane l where l.name = $1::text),
  (select d.body from doc d where d.owner = '' and d.kind = $2::smallint and d.key = $3::bytea);
