-- The version of a row is its count of writes and random bits of the writer, so that two histories of one row that were written equally
-- often are told apart. Rows of older programs have none: the column is added without a rewrite of the table.
alter table {schema}.exec add column draw int not null default 0;
