update job set state = 1, lease_epoch = lease_epoch + 1, lease_id = $3, lease_expires = $4
where id = any (array (
  select id from job where lane = 1 and state = 0 and order_key >= $1 order by order_key, id limit $2 for update skip locked))
returning id, order_key;
