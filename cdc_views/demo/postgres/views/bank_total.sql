-- key: holdings
SELECT
    (SELECT sum(balance) FROM public.accounts) + (SELECT sum(balance) FROM public.savings) AS total,
    (SELECT count(*) FROM public.accounts) + (SELECT count(*) FROM public.savings) AS holdings;
