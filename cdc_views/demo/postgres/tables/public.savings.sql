-- key: id
SELECT id, account_id, balance, interest, touched_at
FROM public.savings;
