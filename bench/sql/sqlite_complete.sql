update job set state = 2, ended_at = ?, lease_expires = null where id = ? and state = 1 and lease_id = ?;
