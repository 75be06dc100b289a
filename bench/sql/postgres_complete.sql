update job set state = 2, ended_at = $1, lease_expires = null where id = any ($2::uuid[]) and state = 1 and lease_id = $3;
