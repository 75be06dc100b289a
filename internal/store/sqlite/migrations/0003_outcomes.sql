-- Programs that do not know this step would not notice an outcome that a handler's own transaction has left, and could give the work to
-- another worker. They refuse the file from here on. It changes no table; the number says it all.
select 1;
