insert into job (id, lane, order_key, created_at, body)
select id, 1, order_key, $1, $2 from unnest($3::uuid[], $4::bigint[]) as t (id, order_key);
