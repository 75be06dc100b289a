select count(*) filter (where state = 2), count(*) from job;
