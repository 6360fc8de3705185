-- key: id
SELECT id, owner, balance, frozen, opened_on
FROM public.accounts;
