insert into job (id, lane, order_key, created_at, body) values (?, 1, ?, ?, ?);
