update job set state = 1, lease_epoch = lease_epoch + 1, lease_id = ?2, lease_expires = ?3
where id in (select id from job where lane = 1 and state = 0 order by order_key, id limit ?1)
returning id;
