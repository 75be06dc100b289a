-- Leaves a submission in the inbox from inside a user's own transaction; one without a body is only looked for. It is a
-- function so that a lock that is not had in time undoes this call alone and not the user's transaction. outcome: 0 nothing was
-- there (and the submission is written), 1 the key or else the id is there already, 2 another open transaction holds it.
create function {schema}.submit_to_inbox(
  in_space smallint, in_namespace text, in_key text, in_fingerprint bytea, in_expires_at bigint, -- in_key null: no key
  in_id uuid, in_n smallint, in_body bytea, in_now bigint,
  out outcome int, out found_id uuid, out found_n smallint, out found_fingerprint bytea, out found_expires_at bigint, out found_body bytea
) language plpgsql set lock_timeout = '1s' set search_path = {schema}, pg_temp as $$
begin
  outcome := 1;
  select i.id, i.n, i.fingerprint, i.expires_at into found_id, found_n, found_fingerprint, found_expires_at
    from idem i where i.namespace = in_namespace and i.key = in_key and i.space = in_space and i.expires_at > in_now;
  if not found then
    select e.id, e.n into found_id, found_n
      from (select id, n from exec where id = in_id union all select id, n from inbox where id = in_id) e limit 1;
  end if;
  if found_id is null and in_key is not null and in_body is not null then
    delete from idem i where i.namespace = in_namespace and i.key = in_key and i.space = in_space and i.expires_at <= in_now;
    insert into idem (space, namespace, key, fingerprint, id, n, expires_at)
      values (in_space, in_namespace, in_key, in_fingerprint, in_id, in_n, in_expires_at) on conflict do nothing;
    if not found then -- it came just now
      select i.id, i.n, i.fingerprint, i.expires_at into found_id, found_n, found_fingerprint, found_expires_at
        from idem i where i.namespace = in_namespace and i.key = in_key and i.space = in_space;
      if not found then -- and went again
        outcome := 2;
        return;
      end if;
    end if;
  end if;
  if found_id is not null then
    select w.body into found_body from inbox w where w.id = found_id;
    return;
  end if;
  if in_body is not null then
    insert into inbox (id, n, body) values (in_id, in_n, in_body);
    -- It takes the id where everybody who submits looks: what commits with another execution of this id has to wait, or has failed.
    insert into exec (id, class_id, n, origin, input, stage, order_key, version, state) values (in_id, 0, in_n, '', '', 0, 0, 0, '');
  end if;
  outcome := 0;
exception
  when lock_not_available then
    outcome := 2;
  when unique_violation then
    outcome := 1;
    found_id := in_id;
    found_n := in_n;
end $$;
