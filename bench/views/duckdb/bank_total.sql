SELECT CAST(SUM(balance) AS DECIMAL(18, 2)) AS total, COUNT(*) AS holdings
FROM (
    SELECT balance FROM accounts
    UNION ALL
    SELECT balance FROM savings
) holdings;
