-- What admission asks for on behalf of every execution of a class is part of what makes it one (S13). The digest of a class that needs
-- nothing stays what it was.
alter table {schema}.class add column needs text collate "C" not null default '';
