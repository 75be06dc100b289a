-- needs: 6
-- Programs that do not know this step would not notice an outcome that a handler's own transaction has left, and could give the work to
-- another worker. Such transactions are refused until the store has it.
alter table {schema}.installation add column outcomes bool not null default true;
